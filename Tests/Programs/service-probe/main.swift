import Platform
import Service

Signals.blockAll()
endProcess(runProbe(CommandLine.arguments))

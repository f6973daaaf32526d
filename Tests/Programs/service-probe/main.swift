import Platform

Signals.holdBack()
endProcess(runProbe(CommandLine.arguments))

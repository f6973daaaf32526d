import Platform

endProcess(runProbe(Array(CommandLine.arguments.dropFirst())))

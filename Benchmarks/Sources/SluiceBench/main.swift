import Glibc

let words = Array(CommandLine.arguments.dropFirst())
do {
  switch words.first {
  case "load": try LoadCommand.run(Array(words.dropFirst()))
  case "codec", "log", "combine", "client", "patterns":
    try MicroCommand.run(words[0], Array(words.dropFirst()))
  case "store": try StoreCommand.run(Array(words.dropFirst()))
  case "tls": try TLSCommand.run(Array(words.dropFirst()))
  case "copy-server": try CopyServerCommand.run(Array(words.dropFirst()))
  case "pong-server": try PongServerCommand.run(Array(words.dropFirst()))
  case "fixed": try FixedCommand.run(Array(words.dropFirst()))
  case "summary": try SummaryCommand.run(Array(words.dropFirst()))
  case "--help", "help":
    print(
      LoadCommand.usage, SummaryCommand.usage, MicroCommand.usage, StoreCommand.usage,
      TLSCommand.usage,
      CopyServerCommand.usage, PongServerCommand.usage, FixedCommand.usage, separator: "\n\n")
  default:
    throw UsageError(
      "a command is needed: load, summary, codec, log, combine, client, patterns, store, tls, fixed; see --help"
    )
  }
} catch let error as UsageError {
  say(error)
  exit(2)
} catch {
  say(error)
  exit(1)
}

/// One line on standard error.
func say(_ error: any Error) {
  let line = Array("sluice-bench: \(error)\n".utf8)
  _ = write(STDERR_FILENO, line, line.count)
}

import Foundation

/// `sluice-bench codec | log | combine | client | patterns`: measures single parts.
enum MicroCommand {
  static let usage = """
    sluice-bench codec | log | combine | client | patterns [options]
        --runs N (default 5)   --seconds S (CPU time of a run where it can be chosen; default 0.1)
        --filter TEXT (only cases whose table or name has it in it)   --json   --json-file FILE
      client, which measures the client library against a broker:
        --port N [--server-pid PID] | --launch 'COMMAND with {port}'
        --size BYTES (16 and more; default 128)   --records R (of a run; default 2,000,000)
      patterns, which measures what many subscriptions to patterns cost others, on two brokers in turn, with and without them:
        --launch 'COMMAND with {port}'   --patterns N (default 10,000)   --topics N (default 10,000)
        --size BYTES   --records R
    """

  static func run(_ part: String, _ words: [String]) throws {
    var arguments = Arguments(words)
    let runs = try arguments.integer("runs", in: 1...1000) ?? 5
    let seconds = try arguments.seconds("seconds") ?? 0.1
    let filter = try arguments.text("filter")
    let json = arguments.flag("json")
    let jsonFile = try arguments.text("json-file")

    var server: LaunchedServer?
    var crowded: LaunchedServer?
    defer {
      server?.stop()
      crowded?.stop()
    }
    var cases: [MicroCase]
    switch part {
    case "codec": cases = CodecBench.cases()
    case "log": cases = LogBench.cases()
    case "combine": cases = CombineBench.cases()
    case "patterns":
      guard let launch = try arguments.text("launch") else { throw UsageError("--launch is needed") }
      let patterns = try arguments.integer("patterns", in: 1...50_000) ?? 10_000
      let topics = try arguments.integer("topics", in: 1...90_000) ?? 10_000
      let settings = try ClientBenchSettings(&arguments)
      try arguments.finish()
      server = try LaunchedServer(command: launch)
      crowded = try LaunchedServer(command: launch)
      cases = PatternBench.cases(
        settings.against(server),
        PatternCrowd(settings.against(crowded), patterns: patterns, topics: topics))
    default:
      let launch = try arguments.text("launch")
      let settings = try ClientBenchSettings(&arguments)
      try arguments.finish()
      guard launch != nil || settings.port != 0 else { throw UsageError("--port or --launch is needed") }
      server = try launch.map { try LaunchedServer(command: $0) }
      cases = ClientBench.cases(settings.against(server))
    }
    try arguments.finish()
    if let filter { cases.removeAll { !$0.table.contains(filter) && !$0.name.contains(filter) } }
    guard !cases.isEmpty else { throw UsageError("no case has \(filter ?? "") in it") }

    let report = try MicroReport(cases, runs: runs, seconds: seconds)
    let line = try report.json()
    print(json ? String(decoding: line, as: UTF8.self) : report.rendered())
    if let jsonFile {
      guard FileManager.default.createFile(atPath: jsonFile, contents: line) else {
        throw BenchError("cannot write \(jsonFile)")
      }
    }
  }
}

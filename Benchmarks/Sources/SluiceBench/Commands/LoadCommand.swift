import Foundation

/// `sluice-bench load`: one workload against one server.
enum LoadCommand {
  static let usage = """
    sluice-bench load --driver nats|jetstream|redis-pubsub|redis-streams|rabbitmq-streams|copy|sluice|
                               mosquitto|mosquitto-qos1|sluice-mqtt|sluice-mqtt-qos1|sluice-http
                      --port N | --launch 'COMMAND with {port}'   ({self}: this program)
        --workload fanout|latency|replay|idle-memory|slow-reader|publish   (default fanout; publish has no subscribers)
        --publishers P  --subscribers S  --size BYTES (16 and more)   (default 1, 1, 128)
        --records R | --seconds T   (default 2 seconds; replay: 512 MiB)   --warmup SECONDS (0.5)
        --window RECORDS  --batch RECORDS   (default by size, the same for all servers)
        --receive-buffer BYTES   (SO_RCVBUF of the load's sockets; default 0: as the kernel likes)
        --rate RECORDS   (a second, for latency; default 10,000)
        --stalled K   (subscribers that never read, for slow-reader; default 1)
        --demand RECORDS   (that a Sluice subscriber asks for ahead; default unlimited)
        --no-acks   (a Sluice producer wants none, as those of NATS, Redis pub/sub and MQTT's QoS 0 get none)
        --subscriber-ports N,M,…   (subscribers connect there in turns: nodes of a cluster)
        --topics T   (publishers take turns among T topics; for publish)
        --durable   (topics on disk, confirmed when stored)   --replicas R   (JetStream; default 1)
        --login USER:PASSWORD   (NATS and JetStream)
        --contained BYTES   (payloads consist of numbered records of so many bytes, as a broker's commits do; default: of letters)
        --topic NAME  --server-pid PID (for CPU and memory; --launch knows it)  --patience SECONDS (10)
        --json   (the report as one line of JSON)   --json-file FILE (the same, appended to a file)
    """

  static func run(_ words: [String]) throws {
    var arguments = Arguments(words)
    let json = arguments.flag("json")
    let jsonFile = try arguments.text("json-file")
    let launch = try arguments.text("launch")
    var options = try options(&arguments)
    try arguments.finish()
    guard launch != nil || options.target.port != 0 else { throw UsageError("--port or --launch is needed") }

    let launched = try launch.map { try LaunchedServer(command: $0) }
    defer { launched?.stop() }
    if let launched {
      options.server = launched.process
      options.target.port = launched.port
    }
    let report = try report(options)

    let line = String(decoding: try report.json(), as: UTF8.self)
    print(json ? line : report.summary)
    if let jsonFile { try append(line + "\n", to: jsonFile) }
    if let fault = report.fault, options.stalled == 0 {
      throw BenchError("\(report.driver) \(report.name): \(fault)")
    }
  }

  private static func options(_ arguments: inout Arguments) throws -> LoadOptions {
    guard let driver = try arguments.text("driver") else { throw UsageError("--driver is needed") }
    let name = try arguments.text("workload") ?? LoadOptions.Workload.fanout.rawValue
    guard let workload = LoadOptions.Workload(rawValue: name) else {
      throw UsageError("unknown workload \(name)")
    }
    let size = try arguments.integer("size", in: 16...1_000_000) ?? 128
    let publishers = try arguments.integer("publishers", in: 1...64) ?? 1
    let subscribers =
      try arguments.integer("subscribers", in: 1...15_000)
      ?? (workload == .idleMemory ? 10_000 : workload == .publish ? 0 : 1)
    let stalled = try arguments.integer("stalled", in: 0...subscribers) ?? 1
    let port = try arguments.integer("port", in: 1...65_535) ?? 0
    let topic = try arguments.text("topic") ?? "bench"
    let batch = try arguments.integer("batch", in: 1...65_536) ?? min(max(65_536 / (size + 16), 4), 2048)
    let window =
      try arguments.integer("window", in: 1...10_000_000) ?? min(max(2_097_152 / size, 256), 16_384)
    let buffer = try arguments.integer("receive-buffer", in: 0...1_073_741_824) ?? 0
    var target = LoadTarget(
      port: UInt16(port), topic: topic, size: size, batch: batch, subscribers: subscribers,
      // If the other servers drop nothing, Sluice's topic must not drop anything either.
      retainedBytes: workload == .replay || workload == .publish ? nil : 4 * window * size,
      receiveBuffer: buffer > 0 ? buffer : nil,
      demand: try arguments.integer("demand", in: 1...1_000_000_000),
      isAcknowledged: !arguments.flag("no-acks"))
    target.subscriberPorts = try (arguments.text("subscriber-ports") ?? "").split(separator: ",").map {
      guard let port = UInt16($0) else { throw UsageError("--subscriber-ports: '\($0)' isn't a port") }
      return port
    }
    target.topics = try arguments.integer("topics", in: 1...10_000) ?? 1
    target.isDurable = arguments.flag("durable")
    target.replicas = try arguments.integer("replicas", in: 1...5) ?? 1
    target.contained = try arguments.integer("contained", in: 20...1_000_000)
    target.login = try arguments.text("login").map { text in
      let parts = text.split(separator: ":", maxSplits: 1).map(String.init)
      guard parts.count == 2 else { throw UsageError("--login needs USER:PASSWORD") }
      return (parts[0], parts[1])
    }
    guard target.topics == 1 || workload == .publish else {
      throw UsageError("--topics is for --workload publish: a subscriber here reads one topic")
    }
    guard workload != .publish || subscribers == 0 else {
      throw UsageError("--workload publish has no subscribers: leave --subscribers out")
    }
    let pid = try arguments.integer("server-pid", in: 1...4_194_304)
    return LoadOptions(
      workload: workload, driver: driver, target: target, publishers: publishers, subscribers: subscribers,
      stalled: workload == .slowReader ? stalled : 0, window: window,
      records: try arguments.integer("records", in: 1...10_000_000_000),
      seconds: try arguments.seconds("seconds") ?? 2, warmup: try arguments.seconds("warmup") ?? 0.5,
      rate: try arguments.integer("rate", in: 1...1_000_000) ?? 10_000,
      patience: try arguments.seconds("patience") ?? 10,
      server: pid.map { ServerProcess(pid: Int32($0)) })
  }

  /// Chooses the driver's type once, so that the code below is compiled for each driver.
  private static func report(_ options: LoadOptions) throws -> LoadReport {
    switch options.driver {
    case "jetstream": try run(JetStreamDriver.self, options)
    case "nats": try run(NatsDriver.self, options)
    case "redis-pubsub": try run(RedisPubSubDriver.self, options)
    case "redis-streams": try run(RedisStreamsDriver.self, options)
    case "rabbitmq-streams": try run(RabbitStreamsDriver.self, options)
    case "mosquitto", "sluice-mqtt": try run(MqttDriver.self, options)
    case "mosquitto-qos1", "sluice-mqtt-qos1": try run(MqttConfirmedDriver.self, options)
    case "sluice-http": try run(HttpDriver.self, options)
    case "copy": try run(CopyDriver.self, options)
    case "sluice": try run(SluiceDriver.self, options)
    default: throw UsageError("unknown driver \(options.driver)")
    }
  }

  private static func run<Driver: LoadDriver>(_ driver: Driver.Type, _ options: LoadOptions) throws
    -> LoadReport
  {
    switch options.workload {
    case .fanout, .slowReader, .publish: try FanoutLoad.run(driver, options)
    case .latency: try LatencyLoad.run(driver, options)
    case .replay: try ReplayLoad.run(driver, options)
    case .idleMemory: try IdleMemoryLoad.run(driver, options)
    }
  }

  private static func append(_ text: String, to path: String) throws {
    guard let file = fopen(path, "a") else { throw BenchError("cannot write \(path)") }
    fputs(text, file)
    fclose(file)
  }
}

extension LoadReport {
  /// One line for a person.
  var summary: String {
    var parts = ["\(driver)  \(name)"]
    if delivered > 0 {
      parts.append("\(Format.count(deliveredPerSecond)) records/s")
      parts.append("\(Format.bytes(bytesPerSecond))/s")
      parts.append("\(Format.digits(seconds)) s")
    }
    if let latency {
      parts.append(
        "p50 \(Format.digits(latency.p50)) p99 \(Format.digits(latency.p99)) p99.9 \(Format.digits(latency.p999)) µs"
      )
    }
    if let cost = serverMicrosecondsPerRecord, let cpus = serverCPUs {
      parts.append("server \(Format.digits(cost)) µs/record, \(Format.digits(cpus)) CPU")
    }
    if delivered > 0 { parts.append("load \(Format.digits(loadCPUs)) CPU") }
    if let bytesPerConnection {
      parts.append("\(subscribers): \(Format.bytes(bytesPerConnection)) per connection")
    }
    if let before = serverBytesBefore, let after = serverBytesAfter {
      parts.append("server memory \(Format.bytes(Double(before))) → \(Format.bytes(Double(after)))")
    }
    if let longestPause { parts.append("longest pause \(Format.digits(longestPause)) s") }
    if workload != "idle-memory" { parts.append(fault ?? "in order, none lost") }
    return parts.joined(separator: "  ")
  }
}

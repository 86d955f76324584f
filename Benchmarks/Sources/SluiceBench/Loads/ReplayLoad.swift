import Glibc

/// Publishes without subscribers, then lets subscribers read all records from the first one on.
enum ReplayLoad {
  static func run<Driver: LoadDriver>(_: Driver.Type, _ options: LoadOptions) throws -> LoadReport {
    guard Driver.keepsRecords else { throw UsageError("\(options.driver) keeps no records to replay") }
    let driver = Driver(target: options.target)
    try driver.prepare()
    let loop = try LoadLoop<Driver, CountingSink>(driver, options.target, publishers: 1)
    try loop.openPublishers()
    var report = LoadReport(options)
    let records = UInt64(options.records ?? min(max(536_870_912 / options.target.size, 1), 4_000_000))
    try loop.publish(
      records, window: options.windowPerPublisher, patience: options.patience, "publishing for the replay")

    let start = Moment(delivered: 0, server: options.server)
    for _ in 0..<options.subscribers { try loop.openSubscriber() }
    var watch = ProgressWatch(patience: options.patience)
    let owed = records * UInt64(options.subscribers)
    try loop.deliver(owed, &watch) { try loop.handleEvents(milliseconds: 100) }
    report.measure(from: start, to: Moment(delivered: loop.delivered, server: options.server))
    report.verify(loop)
    try loop.finish()
    return report
  }
}

/// Many idle connections with a subscription: the server's resident memory for each.
enum IdleMemoryLoad {
  static func run<Driver: LoadDriver>(_: Driver.Type, _ options: LoadOptions) throws -> LoadReport {
    guard let server = options.server else { throw UsageError("idle-memory needs --server-pid or --launch") }
    let driver = Driver(target: options.target)
    try driver.prepare()
    var report = LoadReport(options)
    // The first connections make a server allocate memory that it allocates only once.
    for _ in 0..<10 { try driver.openSubscriber().socket.close() }
    usleep(500_000)
    let before = server.residentBytes()
    let start = Moment(delivered: 0, server: server)
    var sockets: [Socket] = []
    defer { for socket in sockets { socket.close() } }
    for _ in 0..<options.subscribers { sockets.append(try driver.openSubscriber().socket) }
    let finish = Moment(delivered: 0, server: server)
    usleep(1_000_000)
    let after = server.residentBytes()
    report.seconds = Double(finish.time - start.time) / 1e9
    report.serverBytesBefore = before
    report.serverBytesAfter = after
    report.bytesPerConnection = Double(after - before) / Double(options.subscribers)
    return report
  }
}

import Glibc

/// Many subscribed connections on which nothing happens: what each costs the server in resident memory.
enum IdleMemoryLoad {
  static func run<Driver: LoadDriver>(_: Driver.Type, _ options: LoadOptions) throws -> LoadReport {
    guard let server = options.server else { throw UsageError("idle-memory needs --server-pid or --launch") }
    let driver = try Driver(options.target)
    try driver.prepare()
    var report = LoadReport(options)
    // The first connections make a server allocate what it keeps once.
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

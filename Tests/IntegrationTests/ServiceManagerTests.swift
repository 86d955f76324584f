import Glibc
import TestSupport
import Testing

/// What the broker's program tells a service manager such as systemd.
@Suite(.onItsOwnThread) struct ServiceManagerTests {
  @Test(arguments: [false, true])
  func theManagerIsToldOfTheWholeLife(isAbstract: Bool) throws {
    let manager = try NotifySocket(isAbstract: isAbstract)
    let broker = try sluiced(["--listen", "127.0.0.1:0"], tells: manager.name)
    #expect(try manager.receive() == ["READY=1"])
    // Whoever starts because of it may connect at once.
    let listening = try broker.standardOutput.line(startingWith: "sluiced listening on ")
    let client = try RawClient(String(listening.dropFirst("sluiced listening on ".count)))
    try client.shakeHands()

    let before = Deadline.now / 1000
    broker.signal(SIGHUP)
    let reloading = try manager.receive()
    let after = Deadline.now / 1000
    #expect(reloading.first == "RELOADING=1")
    let since = reloading.last.flatMap { UInt64($0.dropFirst("MONOTONIC_USEC=".count)) }
    #expect(since.map { (before...after).contains($0) } == true, "\(reloading)")
    #expect(try manager.receive() == ["READY=1"])

    broker.signal(SIGTERM)
    #expect(try manager.receive() == ["STOPPING=1"])
    #expect(try broker.waitForExit() == .code(0))
    #expect(manager.isSilent)
  }

  @Test func whoCannotStartIsNotReady() throws {
    let first = try BrokerProcess()
    let manager = try NotifySocket(isAbstract: true)
    let second = try sluiced(["--listen", first.address], tells: manager.name)
    #expect(try second.waitForExit() == .code(2))
    #expect(manager.isSilent)
  }

  @Test(arguments: ["/nonexistent/notify", "vsock:2:1234", "@" + String(repeating: "x", count: 200)])
  func aManagerThatCannotBeReachedIsToldOfInTheLog(name: String) throws {
    let broker = try sluiced(["--listen", "127.0.0.1:0"], tells: name)
    try eventually("a warning: \(broker.messages)") {
      broker.standardError.lines.contains { $0.contains("service manager") && $0.contains("READY=1") }
    }
    broker.signal(SIGTERM)
    #expect(try broker.waitForExit() == .code(0))
  }

  private func sluiced(_ options: [String], tells name: String) throws -> ChildProcess {
    try ChildProcess(
      BuiltProduct.path("sluiced"), ["--admin", "off"] + options, environment: ["NOTIFY_SOCKET": name])
  }
}

/// The service manager's end of `NOTIFY_SOCKET`.
private final class NotifySocket {
  /// What the variable says.
  let name: String
  private let directory: TemporaryDirectory
  private let descriptor: Int32

  init(isAbstract: Bool) throws {
    directory = try TemporaryDirectory()
    name = (isAbstract ? "@" : "") + directory.file("notify")
    descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { path in
      path.copyBytes(from: name.utf8)
      if isAbstract { path[0] = 0 }
    }
    let length = socklen_t(MemoryLayout.offset(of: \sockaddr_un.sun_path)! + name.utf8.count)
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
    }
    try require(result == 0, "bind \(name): error \(errno)")
  }

  deinit {
    close(descriptor)
  }

  /// The lines of the next message.
  func receive() throws -> [Substring] {
    let deadline = Deadline(in: Deadline.patience)
    var wanted = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard poll(&wanted, 1, deadline.milliseconds) == 1 else {
      throw TestFailure("the service manager wasn't told")
    }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = recv(descriptor, &bytes, bytes.count, 0)
    try require(count >= 0, "recv: error \(errno)")
    return String(decoding: bytes[..<count], as: UTF8.self).split(separator: "\n")
  }

  /// Whether nothing has been told that wasn't received.
  var isSilent: Bool {
    var byte: UInt8 = 0
    return recv(descriptor, &byte, 1, Int32(MSG_DONTWAIT)) < 0
  }
}

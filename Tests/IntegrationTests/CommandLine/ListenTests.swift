import Glibc
import SluiceWire
import TestSupport
import Testing

/// Addresses of every form, for `--listen` and `--server`, and the number of loops.
@Suite(.onItsOwnThread) struct ListenTests {
  private func expectService(at address: String, of broker: BrokerProcess) throws {
    for variable in [false, true] {
      let options = variable ? [] : ["--server", address]
      let process = try broker.run(
        ["pub", "t", "a", "--quiet"] + options, environment: variable ? ["SLUICE_SERVER": address] : [:])
      #expect(process.standardError.text == "")
    }
    #expect(try broker.run("sub", "t", "--until-live", "--server", address).standardOutput.text == "a\na\n")
  }

  @Test func aUnixSocket() throws {
    let directory = try TemporaryDirectory()
    let address = "unix:\(directory.file("broker"))"
    let broker = try BrokerProcess("--listen", address)
    #expect(broker.addresses[1] == address)
    try expectService(at: address, of: broker)
    // The socket exists as long as the broker.
    #expect(access(directory.file("broker"), F_OK) == 0)
    #expect(try broker.terminate() == .code(0))
    #expect(access(directory.file("broker"), F_OK) != 0)
  }

  @Test(.enabled(if: ListenTests.hasIPv6, "this machine has no ::1")) func anAddressOfIPv6() throws {
    let broker = try BrokerProcess("--listen", "[::1]:0")
    let address = broker.addresses[1]
    #expect(address.hasPrefix("[::1]:") && address != "[::1]:0")
    try expectService(at: address, of: broker)
  }

  @Test func aName() throws {
    let broker = try BrokerProcess("--listen", "localhost:0")
    let port = try #require(broker.addresses[1].split(separator: ":").last)
    try expectService(at: "localhost:\(port)", of: broker)
  }

  @Test func whatCantBeListenedOnIsSaidInOneLine() throws {
    for (address, advice) in [
      ("unix:/nowhere/broker", "choose a path in a directory that exists with --listen"),
      ("192.0.2.1:0", "this machine has no such address"),
    ] {
      let process = try ChildProcess(
        BuiltProduct.path("sluiced"), ["--listen", address, "--admin", "off", "--allow-unauthenticated"])
      #expect(try process.waitForExit() == .code(2))
      #expect(process.standardOutput.text == "" && process.standardError.lines.count == 1)
      #expect(process.standardError.text.contains(advice), "\(process.messages)")
    }
  }

  @Test(arguments: [1, 3]) func thereAreAsManyLoopsAsWereAskedFor(count: Int) throws {
    let broker = try BrokerProcess("--loops", "\(count)", "--admin", "\(Loopback.freshHost()):0")
    let state = try object(try RawHTTP.get(try #require(broker.adminAddress), "/api/broker").text)
    #expect((state["loops"] as? [Any])?.count == count)
    // One thread for each loop.
    let names = try Self.threads(of: broker.process.pid)
    #expect(names.count { $0.hasPrefix("broker-") } == count, "\(names)")
  }

  private static func threads(of pid: pid_t) throws -> [String] {
    let directory = "/proc/\(pid)/task"
    let list = try ChildProcess("/bin/sh", ["-c", "cat \(directory)/*/comm"])
    _ = try list.waitForExit()
    return list.standardOutput.lines
  }

  private static let hasIPv6: Bool = {
    let descriptor = socket(AF_INET6, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    var address = sockaddr_in6()
    address.sin6_family = sa_family_t(AF_INET6)
    inet_pton(AF_INET6, "::1", &address.sin6_addr)
    return withUnsafeBytes(of: &address) {
      bind(descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count)) == 0
    }
  }()
}

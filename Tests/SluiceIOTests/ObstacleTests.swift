import CLinux
import Glibc
import TestSupport
import Testing

@testable import SluiceIO

/// The reason why written bytes haven't reached a peer, by the system's state of the connection.
@Suite struct ObstacleTests {
  private func obstacle(
    retransmits: UInt32 = 0, probes: UInt32 = 0, unacknowledged: UInt32 = 0, window: UInt32 = 60_000
  ) -> StreamObstacle {
    Socket.obstacle(
      sluice_tcp_state(
        retransmits: retransmits, probes: probes, unacknowledged: unacknowledged, window: window,
        segment: 1_448)
    )
  }

  @Test func aPeerThatAcknowledgesAndTakesNoMoreDoesNotRead() {
    #expect(obstacle(window: 0) == .peer)
    #expect(obstacle(probes: 2, window: 0) == .peer)
    // The window has opened by less than a segment, which is in flight.
    #expect(obstacle(unacknowledged: 1, window: 1_000) == .peer)
    // An old kernel doesn't report the window.
    #expect(obstacle(window: .max) == .peer)
  }

  @Test func aPeerWhoseSystemDoesNotAnswerHasANetworkThatDoesNot() {
    #expect(obstacle(unacknowledged: 10) == .network)
    #expect(obstacle(retransmits: 1, unacknowledged: 10) == .network)
    // Probes of a full window are answered as long as there is a network.
    #expect(obstacle(probes: 3, window: 0) == .network)
    #expect(obstacle(retransmits: 4, unacknowledged: 1, window: 0) == .network)
  }

  @Test func aSocketWhosePeerReadsNothingSaysSo() throws {
    let (writer, reader) = try Self.connected()
    defer { for end in [writer, reader] { close(end) } }
    let bytes = [UInt8](repeating: 1, count: 64 << 10)
    while send(writer, bytes, bytes.count, Int32(MSG_DONTWAIT)) > 0 {}
    // The last bytes for which the window had room may still be in flight.
    try eventually("the window is full, and all is acknowledged") { Socket.obstacle(writer) == .peer }
  }

  /// Two ends of a TCP connection of this machine.
  private static func connected() throws -> (Int32, Int32) {
    let kind = Int32(SOCK_STREAM.rawValue)
    let (listener, client) = (socket(AF_INET, kind, 0), socket(AF_INET, kind, 0))
    defer { close(listener) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isConnected = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(listener, address, length) == 0 && listen(listener, 1) == 0
          && getsockname(listener, address, &length) == 0 && connect(client, address, length) == 0
      }
    }
    try #require(isConnected)
    return (client, accept(listener, nil, nil))
  }

  @Test func overAUnixSocketThereIsNoNetwork() throws {
    var ends: [Int32] = [0, 0]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
    #expect(Socket.obstacle(ends[0]) == .peer)
    for end in ends { close(end) }
  }
}

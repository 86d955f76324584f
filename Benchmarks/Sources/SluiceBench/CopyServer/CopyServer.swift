import CLinux
import Glibc

/// A broker that only copies: it writes the bytes of one publisher to every subscriber, on one thread.
///
/// A ring of bytes between them gives back-pressure: the server reads from the publisher only while the slowest subscriber leaves room. Other brokers are
/// compared with it as the limit, since it parses no frames and stores nothing.
final class CopyServer {
  static let publisherRole = UInt8(ascii: "P")
  static let subscriberRole = UInt8(ascii: "S")

  private enum Role { case unknown, publisher, subscriber }

  private final class Peer {
    let socket: Socket
    var role = Role.unknown
    /// The position in the stream before which everything was written to this subscriber.
    var position = 0
    var waitsForRoom = false

    init(_ socket: Socket) {
      self.socket = socket
    }
  }

  private let listener: Socket
  private let poller: Poller
  private let ring: PinnedBuffer
  private let chunk: Int
  private var head = 0
  private var peers: [Int32: Peer] = [:]
  private var subscribers: [Peer] = []
  private var publisher: Peer?
  private var publisherPaused = false

  /// - Parameters:
  ///   - ringSize: bytes between the publisher and the slowest subscriber.
  ///   - chunk: the most bytes to read at once.
  init(port: UInt16, ringSize: Int = 1 << 20, chunk: Int = 1 << 17) throws {
    listener = try Socket.listen(port: port)
    listener.makeNonblocking()
    poller = try Poller()
    ring = PinnedBuffer(count: ringSize)
    self.chunk = chunk
    poller.add(listener.descriptor, interest: Poller.readable, number: UInt64(listener.descriptor))
  }

  var port: UInt16 { listener.localPort }

  /// Serves until the process ends.
  func run() -> Never {
    while true {
      for index in 0..<poller.wait(milliseconds: -1) {
        let (number, ready) = poller.event(index)
        let descriptor = Int32(truncatingIfNeeded: number)
        if descriptor == listener.descriptor {
          acceptAll()
        } else if let peer = peers[descriptor] {
          handle(peer, ready)
        }
      }
    }
  }

  private func acceptAll() {
    while let socket = listener.accept() {
      peers[socket.descriptor] = Peer(socket)
      poller.add(socket.descriptor, interest: Poller.readable, number: UInt64(socket.descriptor))
    }
  }

  private func handle(_ peer: Peer, _ ready: UInt32) {
    switch peer.role {
    case .unknown: learnRole(peer)
    case .publisher: copy(from: peer)
    case .subscriber:
      if ready & ~Poller.writable != 0 {
        var byte: UInt8 = 0
        if recv(peer.socket.descriptor, &byte, 1, 0) <= 0 { return drop(peer) }
      }
      if ready & Poller.writable != 0 {
        write(to: peer)
        resumePublisher()
      }
    }
  }

  private func learnRole(_ peer: Peer) {
    var byte: UInt8 = 0
    guard recv(peer.socket.descriptor, &byte, 1, 0) == 1 else { return drop(peer) }
    switch byte {
    case Self.publisherRole:
      peer.role = .publisher
      publisher = peer
    case Self.subscriberRole:
      peer.role = .subscriber
      peer.position = head
      subscribers.append(peer)
      send(peer.socket.descriptor, &byte, 1, Int32(MSG_NOSIGNAL))
    default: drop(peer)
    }
  }

  private func copy(from peer: Peer) {
    let slowest = subscribers.reduce(head) { min($0, $1.position) }
    let place = head % ring.count
    let room = min(ring.count - (head - slowest), ring.count - place, chunk)
    guard room > 0 else {
      publisherPaused = true
      poller.modify(peer.socket.descriptor, interest: 0, number: UInt64(peer.socket.descriptor))
      return
    }
    let count = recv(peer.socket.descriptor, ring.base + place, room, 0)
    guard count > 0 else {
      if count == 0 || errno != EAGAIN { drop(peer) }
      return
    }
    head += count
    for subscriber in subscribers { write(to: subscriber) }
  }

  private func write(to peer: Peer) {
    while peer.position < head {
      let place = peer.position % ring.count
      let count = min(head - peer.position, ring.count - place)
      let sent = send(peer.socket.descriptor, ring.base + place, count, Int32(MSG_NOSIGNAL))
      if sent > 0 { peer.position += sent }
      if sent < count { break }
    }
    let waits = peer.position < head
    guard waits != peer.waitsForRoom else { return }
    peer.waitsForRoom = waits
    let interest = waits ? Poller.readable | Poller.writable : Poller.readable
    poller.modify(peer.socket.descriptor, interest: interest, number: UInt64(peer.socket.descriptor))
  }

  private func resumePublisher() {
    guard publisherPaused, let publisher else { return }
    publisherPaused = false
    let descriptor = publisher.socket.descriptor
    poller.modify(descriptor, interest: Poller.readable, number: UInt64(descriptor))
  }

  private func drop(_ peer: Peer) {
    peers[peer.socket.descriptor] = nil
    subscribers.removeAll { $0 === peer }
    if publisher === peer {
      publisher = nil
      publisherPaused = false
    }
    peer.socket.close()
    resumePublisher()
  }
}

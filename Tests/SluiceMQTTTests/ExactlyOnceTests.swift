import SluiceMQTT
import TestSupport
import Testing

/// Messages at QoS 2 across lost connections and crashes of the broker, with conforming clients and a correct log.
@Suite("MQTT exactly once")
struct ExactlyOnceTests {
  /// The fate of a turn's output.
  private enum Fate: CaseIterable {
    case sent
    /// The connection is lost before it is sent.
    case lost
    /// The broker crashes after the turn's transaction, or before it.
    case crashedBehind, crashedInFront

    static func random(_ random: inout SeededRandom) -> Fate {
      Int.random(in: 0..<6, using: &random) > 0 ? .sent : allCases.randomElement(using: &random)!
    }
  }

  /// A broker's end of connections, which are lost and restored.
  private struct Link {
    var rig = SessionRig()
    /// The durable state of the session.
    var state: [UInt8]?
    /// The position of the subscription's cursor, and of delivery on this connection.
    var cursor: UInt64 = 0
    var next: UInt64 = 0
    var demand = 0
    var fetches: [(UInt16, MQTTPlace)] = []
    var appending: [UInt16] = []

    mutating func connect() {
      rig = SessionRig()
      (demand, fetches, appending, next) = (0, [], [], cursor)
      let properties = MQTTProperties { $0.append(.sessionExpiry, 100) }
      rig.send(.connect(MQTTConnect(.v5, clientID: "c", cleanStart: false, properties: properties)))
      rig.admit(state: state)
    }

    /// Ends a turn.
    ///
    /// - Returns: the packets that the client receives; nil if the connection has ended.
    mutating func finish(_ fate: Fate, _ log: inout Log) -> [OwnedPacket]? {
      rig.flush()
      var (kept, committed) = (state, cursor)
      for asked in rig.asked {
        switch asked {
        // A record is durable once it is appended.
        case .publish(let message, _, let sequence):
          log.append(message.payload, sequence ?? 0)
          appending.append(message.packetID)
        case .subscribe(let request): next = max(next, (request.underWay.last?.offset).map { $0 + 1 } ?? 0)
        case .fetch(let packetID, let place): fetches.append((packetID, place))
        case .request(let count): demand += count
        case .commit(_, let place): committed = max(committed, place.offset)
        case .store: kept = rig.stored
        default: break
        }
      }
      if fate != .crashedInFront { (state, cursor) = (kept, committed) }
      switch fate {
      case .sent: return rig.packets
      case .lost:
        rig.lose()
        for case .commit(_, let place) in rig.asked { cursor = max(cursor, place.offset) }
        state = rig.departure?.state
        return nil
      case .crashedBehind, .crashedInFront: return nil
      }
    }
  }

  /// A topic's records, and the producer's next sequence.
  private struct Log {
    var records: [[UInt8]] = []
    var nextSequence: UInt64 = 0

    mutating func append(_ payload: [UInt8], _ sequence: UInt64) {
      guard sequence >= nextSequence else { return }
      records.append(payload)
      nextSequence = sequence + 1
    }
  }

  /// A client that publishes messages, up to three at a time, as the standard requires.
  private struct Publisher {
    var toSend: [String]
    /// In the order of sending. A message is released once its PUBREC has arrived.
    var underWay: [(packetID: UInt16, payload: String, isReleased: Bool)] = []
    private var lastID: UInt16 = 0

    init(_ messages: [String]) {
      toSend = messages
    }

    /// The next packets of an open connection.
    mutating func more() -> [OwnedPacket] {
      var packets: [OwnedPacket] = []
      while underWay.count < 3, !toSend.isEmpty {
        lastID = lastID % 5 + 1
        while underWay.contains(where: { $0.packetID == lastID }) { lastID = lastID % 5 + 1 }
        underWay.append((lastID, toSend.removeFirst(), false))
        packets.append(received("a", underWay[underWay.count - 1].payload, .exactlyOnce, lastID))
      }
      return packets
    }

    /// The packets resent on a new connection.
    var again: [OwnedPacket] {
      underWay.map { message in
        message.isReleased
          ? acknowledgement(.pubrel, message.packetID)
          : received("a", message.payload, .exactlyOnce, message.packetID, isDuplicate: true)
      }
    }

    mutating func take(_ packet: OwnedPacket) -> [OwnedPacket] {
      guard case .acknowledgement(let packet) = packet,
        let index = underWay.firstIndex(where: { $0.packetID == packet.packetID })
      else { return [] }
      if packet.type == .pubcomp {
        underWay.remove(at: index)
        return []
      }
      guard packet.type == .pubrec else { return [] }
      underWay[index].isReleased = true
      return [acknowledgement(.pubrel, packet.packetID)]
    }
  }

  @Test("what a client publishes at QoS 2 is in the log once, in its order")
  func inbound() throws {
    var random = SeededRandom.printed()
    for _ in 0..<200 {
      let messages = (0..<30).map { "\($0)" }
      var (publisher, link, log) = (Publisher(messages), Link(), Log())
      link.connect()
      var answers = publisher.again
      for _ in 0..<2000 where !publisher.toSend.isEmpty || !publisher.underWay.isEmpty {
        for packet in answers + publisher.more() { link.rig.send(packet) }
        answers = []
        // The log confirms some of the appended records.
        for _ in 0..<Int.random(in: 0...2, using: &random) where !link.appending.isEmpty {
          link.rig.appended(link.appending.removeFirst())
        }
        if let packets = link.finish(.random(&random), &log) {
          for packet in packets { answers += publisher.take(packet) }
        } else {
          link.connect()
          _ = link.rig.packets
          answers = publisher.again
        }
      }
      #expect(publisher.underWay.isEmpty && publisher.toSend.isEmpty)
      #expect(log.records.map { String(decoding: $0, as: UTF8.self) } == messages)
    }
  }

  @Test("what a client is delivered at QoS 2 comes once, in the order of the log")
  func outbound() throws {
    var random = SeededRandom.printed()
    for _ in 0..<200 {
      var (link, log) = (Link(), Log())
      // The subscription is durable before the first record.
      var first = SessionRig.connected(expiry: 100)
      first.subscribe("a", MQTTSubscriptionOptions(.exactlyOnce))
      first.lose()
      link.state = first.departure?.state
      link.connect()
      let count: UInt64 = 40
      var (delivered, held): ([String], Set<UInt16>) = ([], [])
      var answers: [OwnedPacket] = []
      for _ in 0..<3000 where delivered.count < Int(count) || !held.isEmpty {
        for packet in answers { link.rig.send(packet) }
        answers = []
        for _ in 0..<Int.random(in: 0...3, using: &random) {
          if !link.fetches.isEmpty {
            let (packetID, place) = link.fetches.removeFirst()
            link.rig.fetched(packetID, "a", "\(place.offset)", place)
          } else if link.demand > 0, link.next < count {
            link.demand -= 1
            link.rig.nextOffset = link.next
            link.rig.deliver("a", "\(link.next)")
            link.next += 1
          }
        }
        guard let packets = link.finish(.random(&random), &log) else {
          link.connect()
          continue
        }
        for packet in packets {
          switch packet {
          case .publish(let message):
            if held.insert(message.packetID).inserted {
              delivered.append(String(decoding: message.payload, as: UTF8.self))
            }
            answers.append(acknowledgement(.pubrec, message.packetID))
          case .acknowledgement(let packet) where packet.type == .pubrel:
            held.remove(packet.packetID)
            answers.append(acknowledgement(.pubcomp, packet.packetID))
          default: break
          }
        }
      }
      #expect(held.isEmpty)
      #expect(delivered == (0..<count).map { "\($0)" })
    }
  }
}

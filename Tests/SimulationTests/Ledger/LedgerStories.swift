import SluiceWire
import TestSupport

@testable import SluiceTopics

/// A way in which a client can make the broker store as much as possible with one type of frame, and repeat it.
struct LedgerStory: Sendable {
  /// The number of steps in the table's test.
  var count: Int
  /// Sends one more frame, and the frames that it needs. `size`, from 0 to 1, scales texts and lists to their greatest length.
  var step: @Sendable (_ rig: LedgerRig, _ number: Int, _ size: Double) -> Void

  init(_ count: Int, _ step: @escaping @Sendable (LedgerRig, Int, Double) -> Void) {
    self.count = count
    self.step = step
  }

  // MARK: Texts

  /// A name of up to 255 bytes, unique for `number`.
  static func name(_ number: Int, _ size: Double, _ kind: String = "n") -> String {
    let start = "\(kind)\(number)"
    return start + String(repeating: "x", count: max(0, Int(255 * size) - start.utf8.count))
  }

  /// Such a name with as many tokens as fit.
  static func tokens(_ number: Int, _ size: Double) -> String {
    let start = "p\(number)"
    return start + String(repeating: ".a", count: max(0, (Int(255 * size) - start.utf8.count) / 2))
  }

  /// Conditions with a name of up to 1 KiB and a value of one byte each.
  static func filter(_ size: Double) -> RecordFilter {
    let length = max(1, Int(1024 * size))
    return RecordFilter(
      (0..<max(1, Int(16 * size))).map { number in
        let name = String(repeating: Character(Unicode.Scalar(UInt8(65 + number))), count: length)
        return .init(.header(name), .hasPrefix([UInt8](repeating: 7, count: length)))
      })
  }

  static func positions(_ number: Int, _ size: Double) -> [TopicPosition] {
    (0..<max(1, Int(400 * size))).map {
      TopicPosition(topic: name(number * 1_000 + $0, size), epoch: 1, nextOffset: 5)
    }
  }

  private static var settings: TopicSettings {
    var settings = TopicSettings()
    settings.autoDelete = false
    return settings
  }

  /// A request without lasting effect.
  private static func request<F: Frame>(_ count: Int = 1_000, _ frame: @escaping @Sendable (Int, Double) -> F)
    -> [Self]
  {
    [Self(count) { rig, number, size in rig.send(frame(number, size), rig.stream()) }]
  }

  // MARK: The table

  /// For each type of frame that a broker accepts: every way in which it, or what it opens, can be stored.
  static let table: [FrameType: [LedgerStory]] = [
    .hello: [Self(300) { rig, number, size in rig.reconnect(named: name(number, size)) }],
    .authenticate: request { number, size in
      Authenticate(.password(String(repeating: "p", count: Int(4_000 * size)), user: name(number, size)))
    },
    .ping: [Self(2_000) { rig, number, _ in rig.send(Ping(token: UInt64(number)), 0) }],
    .pong: [Self(2_000) { rig, number, _ in rig.send(Pong(token: UInt64(number)), 0) }],
    .error: [
      Self(1_000) { rig, number, size in
        rig.send(Fault(code: .limitReached, message: name(number, size)), 0)
      }
    ],
    .subscribe: [
      Self(8_000) { rig, number, _ in rig.send(Subscribe(topic: "t", grantedThrough: 0), rig.stream()) },
      Self(1_000) { rig, number, size in
        rig.send(Subscribe(topic: "t", grantedThrough: 0, filter: filter(size)), rig.stream())
      },
      Self(4_000) { rig, number, size in
        rig.send(
          Subscribe(topic: "t", grantedThrough: 0, cursor: name(number, size)), rig.stream())
      },
      Self(4_000) { rig, number, size in
        rig.send(Subscribe(topic: name(number, size, "topic"), grantedThrough: 0), rig.stream())
      },
    ],
    .subscribePattern: [
      Self(2_000) { rig, number, size in
        rig.send(SubscribePattern(pattern: tokens(number, size), grantedThrough: 0), rig.stream())
      },
      Self(1_000) { rig, number, size in
        rig.send(SubscribePattern(pattern: "p.*", grantedThrough: 0, filter: filter(size)), rig.stream())
      },
      Self(200) { rig, number, size in
        if number < 50 { rig.send(TopicCreate(topic: "m.\(number)", settings: settings), rig.stream()) }
        rig.send(SubscribePattern(pattern: "m.*", grantedThrough: 0), rig.stream())
      },
      Self(1_000) { rig, number, size in
        rig.send(
          SubscribePattern(pattern: "p.*", grantedThrough: 0, filter: filter(size), more: true), rig.stream())
      },
    ],
    .positions: [
      Self(100) { rig, number, size in
        let stream = rig.stream()
        rig.send(
          SubscribePattern(
            pattern: "p.*", grantedThrough: 0, positions: positions(2 * number, size), more: true), stream)
        rig.send(Positions(positions(2 * number + 1, size), more: true), stream)
      },
      Self(100) { rig, number, size in
        let stream = rig.stream()
        rig.send(SubscribePattern(pattern: "p.*", grantedThrough: 0, more: true), stream)
        rig.send(Positions(positions(number, size), more: false), stream)
      },
    ],
    .joinGroup: [
      Self(2_000) { rig, number, size in
        rig.send(JoinGroup(topic: "t", group: name(number, size, "g"), grantedThrough: 0), rig.stream())
      },
      Self(400) { rig, number, size in
        var settings = JoinGroup.Settings(acknowledgement: .explicit, order: .byKey)
        settings.deadLetters = name(number, size, "dead")
        settings.filter = filter(size)
        let stream = rig.stream()
        rig.send(
          JoinGroup(topic: "t", group: name(number, size, "g"), settings: settings, grantedThrough: 0), stream
        )
        if number % 2 == 0 { rig.send(Cancel(), stream) }
      },
    ],
    .publishOpen: [
      Self(8_000) { rig, number, _ in
        rig.send(PublishOpen(topic: "t", acknowledgement: .none), rig.stream())
      },
      Self(8_000) { rig, number, _ in
        let stream = rig.stream()
        let producer = UInt64(number + 1) << 20
        rig.send(PublishOpen(topic: "t", acknowledgement: .received, producer: producer), stream)
        if number % 2 == 0 { rig.send(Cancel(), stream) }
      },
    ],
    .publish: [
      Self(200) { rig, number, size in
        let stream = rig.stream()
        rig.send(PublishOpen(topic: name(number % 20, 0.1, "log"), acknowledgement: .none), stream)
        var builder = BatchBuilder()
        let payload = [UInt8](repeating: 1, count: max(1, Int(32_768 * size)))
        payload.withUnsafeBytes { builder.append($0) }
        rig.flush()
        rig.send(builder.publishFrame(from: 0, stream: stream))
        rig.send(Cancel(), stream)
      }
    ],
    .demand: [
      Self(2_000) { rig, number, _ in
        let stream = rig.stream()
        rig.send(Subscribe(topic: "t", grantedThrough: 0), stream)
        rig.send(Demand(grantedThrough: UInt64(number + 1)), stream)
      }
    ],
    // Stored only for nodes.
    .origin: [
      Self(2_000) { rig, number, size in
        rig.send(Origin(node: name(number, size), connection: 1, client: name(number, size)), rig.stream())
      }
    ],
    .lend: [
      Self(1_000) { rig, number, _ in
        let stream = rig.stream()
        rig.send(SubscribePattern(pattern: "none.*", grantedThrough: 0), stream)
        rig.send(Lend(grantedThrough: 5, pacedThrough: 5), stream)
      }
    ],
    .settle: [
      Self(60) { rig, number, size in
        let (member, producer) = (rig.stream(), rig.stream())
        let topic = name(number, 0.1, "work")
        let settings = JoinGroup.Settings(acknowledgement: .explicit)
        rig.send(JoinGroup(topic: topic, group: "g", settings: settings, grantedThrough: .max), member)
        rig.send(PublishOpen(topic: topic, acknowledgement: .none), producer)
        var builder = BatchBuilder()
        let count = max(2, Int(1_000 * size))
        for _ in 0..<count { [UInt8(1)].withUnsafeBytes { builder.append($0) } }
        rig.flush()
        rig.send(builder.publishFrame(from: 0, stream: producer))
        rig.flush()
        for offset in stride(from: 0, to: count, by: 2) {
          rig.send(Settle(.acknowledge, delivery: 1, firstOffset: UInt64(offset), count: 1), member)
        }
      }
    ],
    .commit: [
      Self(2_000) { rig, number, size in
        let stream = rig.stream()
        rig.send(Subscribe(topic: "t", grantedThrough: 0, cursor: name(number, size)), stream)
        rig.send(Commit(nextOffset: 5), stream)
        rig.send(Cancel(), stream)
      }
    ],
    .cancel: [
      Self(4_000) { rig, number, size in
        let stream = rig.stream()
        rig.send(Subscribe(topic: "t", grantedThrough: 0, filter: filter(size / 8)), stream)
        rig.send(Cancel(), stream)
      }
    ],
    .complete: [
      Self(3_000) { rig, number, size in
        let stream = rig.stream()
        rig.send(PublishOpen(topic: name(number, size, "ended"), acknowledgement: .none), stream)
        let message = String(repeating: "m", count: Int(Double(Limits.message) * size))
        rig.send(Complete(.failure(code: .limitReached, message: message)), stream)
      }
    ],
    .topicCreate: [
      Self(4_000) { rig, number, size in
        rig.send(TopicCreate(topic: name(number, size, "made"), settings: settings), rig.stream())
      },
      Self(4_000) { rig, number, size in
        rig.send(TopicCreate(topic: "_inbox." + name(number, size / 2), settings: settings), rig.stream())
      },
    ],
    .topicShow: request { _, _ in TopicShow(topic: "t") },
    .topicList: request(300) { number, size in TopicList(after: name(number, size), limit: .max) },
    .topicDelete: [
      Self(2_000) { rig, number, size in
        let stream = rig.stream()
        rig.send(TopicCreate(topic: name(number, size, "gone"), settings: settings), stream)
        rig.flush()
        rig.send(TopicDelete(topic: name(number, size, "gone")), stream)
      }
    ],
    .topicConnect: request { _, _ in TopicConnect(topic: "t") },
    .topicDisconnect: request { _, _ in TopicDisconnect(topic: "t") },
    .topicSet: request { _, _ in TopicSet(topic: "t", settings: settings) },
    .topicTrim: request { number, _ in TopicTrim(topic: "t", .newest(UInt64(number))) },
    .cursorList: request(300) { number, size in CursorList(topic: "t", after: name(number, size), limit: .max)
    },
    .cursorMove: request(4_000) { number, size in
      CursorMove(topic: "t", name: name(number, size, "moved"), to: .offset(7))
    },
    .cursorDelete: [
      Self(2_000) { rig, number, size in
        let stream = rig.stream()
        rig.send(CursorMove(topic: "t", name: name(number, size, "gone"), to: .offset(7)), stream)
        rig.flush()
        rig.send(CursorDelete(topic: "t", name: name(number, size, "gone")), stream)
      }
    ],
    .stateList: request(300) { _, _ in StateList(topic: "d", kind: .producer) },
    .stateRestore: [
      Self(40) { rig, number, size in
        let states = (0..<max(1, Int(400 * size))).map { index in
          StateEntry(
            key: StoredValue.key(UInt64(number * 400 + index + 1) << 20),
            value: StoredProducer(next: 5).encoded())
        }
        rig.send(StateRestore(topic: "d", kind: .producer, origin: 0, states: states), rig.stream())
      },
      Self(400) { rig, number, size in
        let settings = JoinGroup.Settings(acknowledgement: .explicit, filter: filter(size / 2))
        let stored = StoredGroup(
          epoch: 7, seed: 1, settings: settings, state: .init(frontier: 0, entries: []))
        let entry = StateEntry(key: StoredValue.key(name(number, size, "g")), value: stored.encoded())
        rig.send(StateRestore(topic: "d", kind: .group, origin: 0, states: [entry]), rig.stream())
      },
    ],
    .connectionList: request(300) { number, _ in ConnectionList(after: UInt64(number), limit: .max) },
    .connectionClose: request { number, _ in ConnectionClose(connection: UInt64(number + 1) << 40) },
    .brokerShow: request(300) { _, _ in BrokerShow() },
    .clusterShow: request { number, size in
      ClusterShow(after: name(number, size / 4), nodes: .max, shards: .max)
    },
    .clusterDrain: request { number, size in ClusterDrain(node: name(number, size / 8), wanted: true) },
    .clusterMove: request { number, size in ClusterMove(shard: UInt32(number), node: name(number, size / 8))
    },
  ]
}

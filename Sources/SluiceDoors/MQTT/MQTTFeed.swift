import SluiceIO
import SluiceMQTT
import SluiceWire

/// A topic of which records come to a client: its name as MQTT writes it, and how far they have come.
@safe
final class MQTTFeedTopic {
  /// By the session's places.
  let number: UInt32
  /// The name that the client sees; empty for a topic of which it sees nothing.
  let name: UnsafeRawBufferPointer
  var nextOffset: UInt64
  /// The time of the last mark.
  var time: Int64 = 0

  /// - Parameter brokerName: empty for a topic of which the client sees nothing.
  init(number: UInt32, brokerName: String, nextOffset: UInt64) {
    self.number = number
    self.nextOffset = nextOffset
    let bytes = brokerName.isEmpty ? [] : Array(MQTTTopicName.name(ofBroker: brokerName).utf8)
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
    unsafe memory.copyBytes(from: bytes)
    unsafe name = UnsafeRawBufferPointer(memory)
  }

  /// Whether the client sees the topic.
  var isNamed: Bool { unsafe !name.isEmpty }

  /// The name as a string; nil where the client doesn't see the topic.
  var text: String? { unsafe isNamed ? String(decoding: name, as: UTF8.self) : nil }

  deinit {
    unsafe name.deallocate()
  }
}

/// A stream of records from the broker: for a subscription of the session, its group, its retained messages, or one record that is read again.
final class MQTTFeed {
  enum Role {
    case pattern
    case group
    /// The topics that a shared filter with wildcards selects, without their records: each has a group's stream of its own.
    case watch
    /// The retained messages of the topics that a filter matches.
    indirect case retained(MQTTTopicFilter)
    /// A record that is read again, for a message that is under way.
    indirect case fetch(UInt16, MQTTPlace)

    /// Whether its records are messages of their topics.
    var hasMessages: Bool {
      switch self {
      case .pattern, .group: true
      case .watch, .retained, .fetch: false
      }
    }

    var isFetch: Bool { if case .fetch = self { true } else { false } }
  }

  struct Counted: Hashable {
    var outstanding: Int
    var hasShare: Bool
  }

  let role: Role
  let stream: UInt32
  /// The session's number of the subscription.
  let number: UInt16
  /// Whether records come without demand.
  let isUnlimited: Bool
  var isOpen = false
  /// Records that were asked for, and that have come.
  var granted: UInt64
  var delivered: UInt64 = 0
  /// Of a pattern: by the stream's numbers. Of another role: 0.
  var topics = ShortTable<UInt32, MQTTFeedTopic>()
  var current: MQTTFeedTopic?
  /// Batches of it wait: those that follow wait, too.
  var held = 0
  /// What the shares of the session's demand have of it; nil where it has no part in them.
  var counted: Counted?
  /// Whether the shares look at it next.
  var isWaiting = false
  /// Of retained messages: all have come.
  var isDone = false
  /// Of a watch: all topics are known that were there at first.
  var hasBegun = false
  /// Of a group: for which time the records that follow are delivered; and of records that the client has, where it isn't the first.
  var delivery: UInt32 = 1
  var deliveries: [UInt64: UInt32] = [:]
  /// Of a group in a topic that a filter with wildcards selects: the broker's name of the topic.
  @OutOfLine var joined: String? = nil
  /// Of retained messages at a node of a cluster: those of this process' copy, which no stream of the broker brings.
  var local: MQTTRetainedReading?

  init(_ role: Role, number: UInt16, stream: UInt32, granted: UInt64) {
    self.role = role
    self.number = number
    self.stream = stream
    self.granted = granted
    isUnlimited = granted == Credit.unlimited
  }

  /// Whether it has a share of the session's demand.
  var hasShare: Bool {
    if isUnlimited || held > 0 { return false }
    switch role {
    case .fetch, .watch: return false
    case .pattern, .group, .retained: return true
    }
  }

  /// Records that were asked for and haven't come.
  var outstanding: Int { isUnlimited ? 0 : Int(clamping: granted - min(granted, delivered)) }
}

/// Records that the client can't be sent yet.
struct MQTTHeldBatch {
  var feed: MQTTFeed
  var topic: MQTTFeedTopic
  var firstOffset: UInt64
  var delivery: UInt32
  var time: Int64
  var bytes: [UInt8]
}

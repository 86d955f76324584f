import SluiceIO
import SluiceMQTT
import SluiceWire

/// A topic whose records go to a client: its name in MQTT's form, and the next offset.
@safe
final class MQTTFeedTopic {
  /// The number in the session's positions.
  let number: UInt32
  /// The name that the client sees; empty for a hidden topic.
  let name: UnsafeRawBufferPointer
  var nextOffset: UInt64
  /// The timestamp of the last mark.
  var time: Int64 = 0

  /// - Parameter brokerName: empty for a hidden topic.
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

  /// The name as a string; nil for a hidden topic.
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
    /// Lists the topics that a shared filter with wildcards selects, without their records: each has its own group stream.
    case watch
    /// The retained messages of the topics that a filter matches.
    indirect case retained(MQTTTopicFilter)
    /// One record that is read again, for a message in flight.
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
  /// Whether records arrive without demand.
  let isUnlimited: Bool
  var isOpen = false
  /// Records that were requested, and records that have arrived.
  var granted: UInt64
  var delivered: UInt64 = 0
  /// For a pattern: by the numbers in the stream. For other roles: 0.
  var topics = ShortTable<UInt32, MQTTFeedTopic>()
  var current: MQTTFeedTopic?
  /// The number of held batches; while there are any, later batches are held as well.
  var held = 0
  /// The values with which the shares of the session's demand count this feed; nil if they don't.
  var counted: Counted?
  /// Whether the next sharing of demand includes the feed.
  var isWaiting = false
  /// For retained messages: whether all have arrived.
  var isDone = false
  /// For a watch: whether all topics are known that existed when it began.
  var hasBegun = false
  /// For a group: how often it has delivered the records that follow, this time included.
  var delivery: UInt32 = 1
  /// For a group: the delivery counts above 1 of records that the client has, by offset.
  var deliveries: [UInt64: UInt32] = [:]
  /// For a group in a topic that a filter with wildcards selects: the broker's name of the topic.
  @OutOfLine var joined: String? = nil
  /// For retained messages on a node of a cluster: reads this process' copy, so there is no stream of the broker.
  var local: MQTTRetainedReading?

  init(_ role: Role, number: UInt16, stream: UInt32, granted: UInt64) {
    self.role = role
    self.number = number
    self.stream = stream
    self.granted = granted
    isUnlimited = granted == Credit.unlimited
  }

  /// Whether it gets a share of the session's demand.
  var hasShare: Bool {
    if isUnlimited || held > 0 { return false }
    switch role {
    case .fetch, .watch: return false
    case .pattern, .group, .retained: return true
    }
  }

  /// Records that were requested and haven't arrived.
  var outstanding: Int { isUnlimited ? 0 : Int(clamping: granted - min(granted, delivered)) }
}

/// Records that can't be sent to the client yet.
struct MQTTHeldBatch {
  var feed: MQTTFeed
  var topic: MQTTFeedTopic
  var firstOffset: UInt64
  var delivery: UInt32
  var time: Int64
  var bytes: [UInt8]
}

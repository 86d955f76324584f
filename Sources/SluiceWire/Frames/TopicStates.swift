/// A small state of a topic, as its broker keeps it: where a producer or a group stands.
///
/// ```
/// bytes key · bytes value
/// ```
///
/// Only the broker interprets a value: a client stores it unchanged, and returns it with ``StateRestore``.
public struct StateEntry: Hashable, Sendable {
  /// The number is the one on the wire.
  public enum Kind: UInt8, Hashable, Sendable, CaseIterable {
    /// By a producer's number: which of its records is expected next.
    case producer = 1
    /// By a group's name: its settings, and what is done with.
    case group = 3
  }

  /// 1 to 255 bytes.
  public var key: [UInt8]
  public var value: [UInt8]

  public init(key: [UInt8], value: [UInt8]) {
    self.key = key
    self.value = value
  }

  static let layout = FrameLayout(
    Self.init, Field.bytes("state's key", \Self.key), Field.bytes("state's value", \Self.value))
}

/// STATE_LIST: asks for a topic's states of one kind, a page at a time. Answered by ``TopicStates`` or ``Fault`` on the same stream.
///
/// ```
/// string topic · u8 kind · 3 × u8 0 · bytes after
/// ```
public struct StateList: LaidOutFrame {
  public static let type = FrameType.stateList

  public var topic: String
  public var kind: StateEntry.Kind
  /// Only states whose keys come after this one in byte order; empty for the first page.
  public var after: [UInt8]

  public init(topic: String, kind: StateEntry.Kind, after: [UInt8] = []) {
    self.topic = topic
    self.kind = kind
    self.after = after
  }

  public static let layout = FrameLayout(
    Self.init, Field.name(.topic, "STATE_LIST topic", \Self.topic),
    Field.stateKind("STATE_LIST kind", \Self.kind).padded(reserved: ("STATE_LIST reserved", 3)),
    Field.bytes("STATE_LIST after", \Self.after))
}

/// STATES: a page of a topic's states of one kind, in byte order of their keys, all of one moment. Answers ``StateList``.
///
/// ```
/// u64 epoch · u64 next offset · u8 more (0 or 1) · list of states
/// ```
public struct TopicStates: LaidOutFrame {
  public static let type = FrameType.states

  /// The topic's epoch at that moment.
  public var epoch: UInt64
  /// The offset that the topic's next record got then. Pages with the same one agree: nothing was published between them.
  public var nextOffset: UInt64
  /// True when there are states after the last of this page.
  public var more: Bool
  public var states: [StateEntry]

  public init(epoch: UInt64, nextOffset: UInt64, states: [StateEntry], more: Bool) {
    self.epoch = epoch
    self.nextOffset = nextOffset
    self.states = states
    self.more = more
  }

  public static let layout = FrameLayout(
    { Self(epoch: $0, nextOffset: $1, states: $3, more: $2) }, Field.integer("STATES epoch", \Self.epoch),
    Field.integer("STATES next offset", \Self.nextOffset), Field.flag("STATES more", \Self.more),
    Field.list("state", \Self.states, StateEntry.layout))
}

/// STATE_RESTORE: gives a topic states of one kind back that another one had, or the same in an earlier life. Answered by ``Done``, or ``Fault`` on the same
/// stream.
///
/// ```
/// string topic · u8 kind · 3 × u8 0 · u64 origin · list of states
/// ```
///
/// A producer that is known keeps what is more; a group that is there refuses the request.
public struct StateRestore: LaidOutFrame {
  public static let type = FrameType.stateRestore

  public var topic: String
  public var kind: StateEntry.Kind
  /// The offset, in the topic that the states are of, of the record that has offset 0 in this one.
  public var origin: UInt64
  public var entries: StateEntries

  public init(topic: String, kind: StateEntry.Kind, origin: UInt64, entries: StateEntries) {
    self.topic = topic
    self.kind = kind
    self.origin = origin
    self.entries = entries
  }

  public init(topic: String, kind: StateEntry.Kind, origin: UInt64, states: [StateEntry]) {
    self.init(topic: topic, kind: kind, origin: origin, entries: StateEntries(states))
  }

  /// All of the states.
  public var states: [StateEntry] {
    get {
      var reader = entries.reader()
      return reader.next(entries.count)
    }
    set { entries = StateEntries(newValue) }
  }

  public static let layout = FrameLayout(
    { Self(topic: $0, kind: $1, origin: $2, entries: $3) },
    Field.name(.topic, "STATE_RESTORE topic", \Self.topic),
    Field.stateKind("STATE_RESTORE kind", \Self.kind).padded(reserved: ("STATE_RESTORE reserved", 3)),
    Field.integer("STATE_RESTORE origin", \Self.origin),
    Field(
      write: { $0.entries.write(into: &$1) },
      read: { (reader: inout FieldReader) throws(WireError) in try StateEntries(list: &reader.bytes) }))
}

extension Field where Value == StateEntry.Kind {
  fileprivate static func stateKind(
    _ what: StaticString, _ get: @escaping @Sendable (Owner) -> StateEntry.Kind
  ) -> Field {
    .choice(what, get, else: .producer) { "a state has kind \($0); 1 and 3 are defined" }
  }
}

extension Field where Value == [UInt8] {
  /// A `u32` count, and as many bytes.
  fileprivate static func bytes(
    _ what: StaticString, _ get: @escaping @Sendable (Owner) -> [UInt8]
  ) -> Field {
    Field(
      write: { owner, writer in
        let bytes = get(owner)
        writer.integer(UInt32(bytes.count))
        writer.bytes += bytes
      },
      read: { (reader: inout FieldReader) throws(WireError) in
        let count: UInt32 = try reader.bytes.integer(what)
        return unsafe Array(try reader.bytes.bytes(what, count: Int(count)))
      })
  }
}

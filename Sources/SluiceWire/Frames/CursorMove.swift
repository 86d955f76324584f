/// CURSOR_MOVE: puts a durable cursor, or a group, elsewhere in its topic. Answered by ``Done``, or ``Fault`` on the same stream.
///
/// ```
/// string topic · string name · u8 start · 3 × u8 0 · u64 start value
/// ```
///
/// The cursor is created if there is none. A subscription that uses it ends with ``ErrorCode/cursorMoved``, and so does every member of a group.
public struct CursorMove: LaidOutFrame {
  public static let type = FrameType.cursorMove

  public var topic: String
  public var name: String
  public var start: Subscribe.Start

  public init(topic: String, name: String, to start: Subscribe.Start) {
    self.topic = topic
    self.name = name
    self.start = start
  }

  public static let layout = FrameLayout(
    { Self(topic: $0, name: $1, to: Subscribe.Start(number: $2, value: $3)) },
    Field.name(.topic, "CURSOR_MOVE topic", \Self.topic), Field.name(.cursor, "CURSOR_MOVE name", \Self.name),
    Field.start("CURSOR_MOVE start", \Self.start).padded(reserved: ("CURSOR_MOVE reserved", 3)),
    Field.integer("CURSOR_MOVE start value", \Self.start.value))
}

/// CURSOR_DELETE: forgets a durable cursor or a group. Answered by ``Done``, or ``Fault`` on the same stream.
///
/// ```
/// string topic · string name
/// ```
///
/// A subscription that uses it ends with ``ErrorCode/cursorDeleted``.
public struct CursorDelete: LaidOutFrame {
  public static let type = FrameType.cursorDelete

  public var topic: String
  public var name: String

  public init(topic: String, name: String) {
    self.topic = topic
    self.name = name
  }

  public static let layout = FrameLayout(
    Self.init, Field.name(.topic, "CURSOR_DELETE topic", \Self.topic),
    Field.name(.cursor, "CURSOR_DELETE name", \Self.name))
}

/// Where in a log a subscription begins.
///
/// "First kept" and "kept" mean what ``Retention`` keeps at the moment of asking; "head" is the offset that the
/// next record will get. No position is an error: each has a rule for what is out of range.
public enum StartPosition: Hashable, Sendable {
  /// What the topic replays to late subscribers: the first record kept; the head when none is.
  case replay

  /// The first record kept; the head when none is.
  case earliest

  /// The head: only records appended from now on.
  case new

  /// The newest so many records. More than are kept: the first record kept. 0: the head.
  case last(UInt64)

  /// The record with this offset. Below the first kept: the first kept, and the difference is told as missed. Beyond
  /// the head: nothing is read until the head has passed it.
  case offset(UInt64)

  /// The first record kept whose time (milliseconds since 1970) is this or later. Before all: the first kept. Later than
  /// all: the head, whatever times the records to come will have.
  case time(Int64)
}

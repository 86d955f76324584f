/// The sequences of a group's dead letters if another node may own the dead-letter topic: the group is a producer of that topic, and each dead letter has its
/// sequence.
///
/// A record gets its sequence before it is sent, and keeps it until the outcome is known; no other record is sent with that sequence. If the group outlives
/// its node, the sequence is stored before the record is sent: the group's next owner queries which sequence the topic expects, and so learns whether the
/// topic has the record.
package struct GroupOutbox: Hashable, Sendable {
  /// The sequence of the next dead letter.
  package internal(set) var next: UInt64 = 0
  /// The offset of the record that has this sequence; nil while no record has.
  package internal(set) var offset: UInt64?

  init(next: UInt64 = 0, offset: UInt64? = nil) {
    self.next = next
    self.offset = offset
  }
}

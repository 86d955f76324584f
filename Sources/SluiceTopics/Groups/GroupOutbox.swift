/// The numbers of a group's dead letters where their topic may be at another node: the group is a producer of that topic, and each dead letter has its
/// sequence.
///
/// A record gets its number before it is sent, keeps it until it is known what became of it, and no other record is sent under that number. Where the group
/// outlives its node, the number is stored before the record is sent: the group's next owner asks the topic which number it expects, and so knows whether
/// the record is there.
package struct GroupOutbox: Hashable, Sendable {
  /// The number of the next dead letter.
  package internal(set) var next: UInt64 = 0
  /// The offset of the record that has it; nil while no record has.
  package internal(set) var offset: UInt64?

  init(next: UInt64 = 0, offset: UInt64? = nil) {
    self.next = next
    self.offset = offset
  }
}

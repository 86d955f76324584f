/// A client's stated knowledge of a topic: the records of an epoch before an offset.
public struct KnownHistory: Hashable, Sendable {
  /// 0 when the client knows none.
  public var epoch: UInt64
  public var nextOffset: UInt64

  public init(epoch: UInt64, nextOffset: UInt64) {
    self.epoch = epoch
    self.nextOffset = nextOffset
  }

  /// Nil for a subscription that isn't a resumption: an offset without an epoch is a wish.
  public init?(_ frame: Subscribe) {
    guard frame.epoch != 0, case .offset(let next) = frame.start else { return nil }
    self.init(epoch: frame.epoch, nextOffset: next)
  }

  public init(_ position: TopicPosition) {
    self.init(epoch: position.epoch, nextOffset: position.nextOffset)
  }
}

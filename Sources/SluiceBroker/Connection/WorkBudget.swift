/// Limits how much work one connection may cause per loop turn. What is left of its frames, and of the work for one of them, is for the
/// connection's next turn, and other connections have theirs in between.
///
/// Counted in steps of about a microsecond or a few: see ``FrameCost``. Records aren't counted: the bytes that a turn reads bound them. The
/// number of frames is bounded besides, whatever they cost: of the smallest there are tens of thousands in those bytes.
struct WorkBudget {
  /// Steps that a connection may cause in one turn, some milliseconds of work.
  static let limit = 1_024

  /// Frames that are taken up in one turn. Those with records in them don't come to as many.
  static let frameLimit = 4_096

  /// Parts of a step, so that work of which many make a step is counted one by one.
  private static let parts = 64

  private var spentParts = 0
  private var frames = 0

  /// Steps that were caused in this turn.
  var spent: Int { spentParts / Self.parts }

  /// There is no more of it in this turn.
  var isExhausted: Bool { spent >= Self.limit || frames >= Self.frameLimit }

  /// How much of that work there may still be in this turn.
  func left(_ work: FrameCost.Work) -> Int {
    isExhausted ? 0 : max((Self.limit * Self.parts - spentParts) * work.perStep / Self.parts, 1)
  }

  /// A frame was taken up, or passed over.
  mutating func tookFrame() { frames &+= 1 }

  mutating func spend(_ steps: Int) { spend(parts: steps.multipliedReportingOverflow(by: Self.parts)) }

  /// So much was found that a frame's work is about.
  mutating func spend(_ count: Int, of work: FrameCost.Work) {
    spend(parts: count.multipliedReportingOverflow(by: Self.parts / work.perStep))
  }

  private mutating func spend(parts: (partialValue: Int, overflow: Bool)) {
    let sum = spentParts.addingReportingOverflow(parts.partialValue)
    spentParts = parts.overflow || sum.overflow ? .max : sum.partialValue
  }

  /// A new turn begins.
  mutating func renew() {
    spentParts = 0
    frames = 0
  }
}

import SluiceTopics
import SluiceWire

/// Limits how much work one connection may cause per loop turn. Its remaining frames, and the rest of an unfinished one, wait for the connection's
/// next turn, after other connections were served.
///
/// Counted in steps of one to a few microseconds: see ``FrameCost``. Records aren't counted, since the bytes read per turn bound them. The number of
/// frames is bounded separately: a read may contain tens of thousands of the smallest ones.
struct WorkBudget {
  /// The steps of one turn: some milliseconds of work.
  static let limit = 1_024

  /// The frames of one turn. Frames with records never reach this number.
  static let frameLimit = 4_096

  /// Fractions of a step, for units of work that cost less than a step.
  private static let parts = 64

  private var spentParts: Int32 = 0
  private var frames: Int32 = 0

  /// Steps spent in this turn.
  var spent: Int { Int(spentParts) / Self.parts }

  /// Whether the turn's steps or frames are used up.
  var isExhausted: Bool { spent >= Self.limit || frames >= Self.frameLimit }

  /// How many units of `work` may still be done in this turn.
  func left(_ work: FrameCost.Work) -> Int {
    isExhausted ? 0 : max((Self.limit * Self.parts - Int(spentParts)) * work.perStep / Self.parts, 1)
  }

  /// Counts a frame, handled or skipped.
  mutating func tookFrame() { frames &+= 1 }

  mutating func spend(_ steps: Int) { spend(parts: steps.multipliedReportingOverflow(by: Self.parts)) }

  /// Spends the steps for a number of units of work.
  mutating func spend(_ count: Int, of work: FrameCost.Work) {
    spend(parts: count.multipliedReportingOverflow(by: Self.parts / work.perStep))
  }

  private mutating func spend(parts: (partialValue: Int, overflow: Bool)) {
    let sum = Int(spentParts).addingReportingOverflow(parts.partialValue)
    spentParts = parts.overflow || sum.overflow ? .max : Int32(clamping: sum.partialValue)
  }

  /// Begins a new turn.
  mutating func renew() {
    spentParts = 0
    frames = 0
  }
}

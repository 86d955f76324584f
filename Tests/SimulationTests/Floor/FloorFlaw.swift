import SluiceWire

/// What a test plants between a broker and the oracle of the floor.
enum FloorFlaw: CaseIterable {
  /// Larger limits bring back what smaller ones have dropped.
  case largerLimitsBringBack
  /// A durable cursor goes on where it was, trimmed or not.
  case cursorsIgnoreTheFloor
  /// A durable cursor passes a record that its subscriber has yet to get.
  case cursorsPassWhatIsOwed
  /// A group goes on where it was, trimmed or not.
  case groupsIgnoreTheFloor
  /// A subscriber that returns gets what was trimmed meanwhile.
  case returningIgnoresTrims
  /// Lag counts what is gone.
  case lagCountsWhatIsGone
  /// What has expired while the broker was down is served until its first round.
  case expiryWaitsForARound
  /// The floor is one too high.
  case startsTooHigh
}

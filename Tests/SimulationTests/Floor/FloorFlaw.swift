import SluiceWire

/// A fault that a test plants between a broker and the oracle of the floor.
enum FloorFlaw: CaseIterable {
  /// Raising limits brings back dropped records.
  case largerLimitsBringBack
  /// A durable cursor resumes at its position even if the topic was trimmed beyond it.
  case cursorsIgnoreTheFloor
  /// A durable cursor skips a record that its subscriber has yet to get.
  case cursorsPassWhatIsOwed
  /// A group resumes at its position even if the topic was trimmed beyond it.
  case groupsIgnoreTheFloor
  /// A subscriber that resumes gets records that were trimmed meanwhile.
  case returningIgnoresTrims
  /// Lag counts dropped records.
  case lagCountsWhatIsGone
  /// Records that expired while the broker was down are served until its first retention pass.
  case expiryWaitsForARound
  /// The floor is one too high.
  case startsTooHigh
}

import SluiceStore

/// Decides which of the shards' streams are queried next: a number at a time, to limit the engine's work, and all of them in turn.
struct StreamRounds {
  /// The number of streams queried in each round: all of a cluster with the usual number of shards, whose figures are then of one moment.
  static let atATime = 64

  private var next = 0

  /// Returns the streams of the next round.
  ///
  /// - Parameters:
  ///   - shards: the number of shards.
  ///   - urgent: streams that are queried again at once.
  mutating func take(of shards: Int, urgent: some Sequence<String>) -> [String] {
    var streams = Array(urgent.prefix(Self.atATime))
    var left = shards
    while left > 0, streams.count < Self.atATime {
      left -= 1
      if next >= shards { next = 0 }
      let stream = EngineNames(shard: ShardID(rawValue: UInt32(next))).stream
      next += 1
      if !streams.contains(stream) { streams.append(stream) }
    }
    return streams
  }
}

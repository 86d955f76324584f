import SluiceStore

/// Which of the shards' streams are asked about next: a number at a time, so that the engine has little work with it, and all of them in turn.
struct StreamRounds {
  /// So many are asked about with each look at the engine: all of a cluster with the usual number of shards, whose figures then are of one moment.
  static let atATime = 64

  private var next = 0

  /// The streams of the next look.
  ///
  /// - Parameters:
  ///   - shards: how many there are.
  ///   - urgent: streams that are asked about again at once.
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

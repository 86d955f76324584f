/// Stable hashes: the same on every node, in every version.
public enum ShardHash {
  /// FNV-1a, mixed so that its upper bits depend on all bytes.
  public static func hash(_ text: String) -> UInt64 {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
    return mix(hash)
  }

  public static func mix(_ value: UInt64) -> UInt64 {
    var word = value
    word = (word ^ (word >> 30)) &* 0xbf58_476d_1ce4_e5b9
    word = (word ^ (word >> 27)) &* 0x94d0_49bb_1331_11eb
    return word ^ (word >> 31)
  }

  /// The shard of a topic.
  public static func shard(of topic: String, of count: Int) -> Int {
    Int(hash(topic).multipliedFullWidth(by: UInt64(count)).high)
  }
}

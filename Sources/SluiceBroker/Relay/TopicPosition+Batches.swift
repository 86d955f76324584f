import SluiceWire

extension [TopicPosition] {
  /// Divides positions into batches of about that many encoded bytes, with at least one position in each.
  func batches(ofBytes most: Int) -> [[TopicPosition]] {
    var batches: [[TopicPosition]] = []
    var bytes = Int.max
    for position in self {
      let length = position.topic.utf8.count + 24
      if bytes > most - Swift.min(length, most) {
        batches.append([])
        bytes = 0
      }
      bytes += length
      batches[batches.count - 1].append(position)
    }
    return batches
  }
}

/// Commits that failed and are retried, at most one for each topic, in the order in which they were begun.
struct StuckCommits {
  private(set) var all: [TopicCommit] = []

  var isEmpty: Bool { all.isEmpty }

  /// Adds failed commits after those that failed earlier, so that they are stored in the order in which they were begun.
  mutating func add(_ commits: [TopicCommit]) {
    guard !all.isEmpty else { return all = commits }
    var places: [ObjectIdentifier: Int] = [:]
    for (index, commit) in all.enumerated() { places[ObjectIdentifier(commit.topic)] = index }
    for commit in commits {
      if let place = places[ObjectIdentifier(commit.topic)] {
        all[place].merge(commit)
      } else {
        all.append(commit)
      }
    }
  }

  func has(_ topic: any DurableTopic) -> Bool { all.contains { $0.topic === topic } }

  mutating func remove(_ topic: any DurableTopic) { all.removeAll { $0.topic === topic } }

  mutating func remove(_ commits: [TopicCommit]) {
    let topics = Set(commits.map { ObjectIdentifier($0.topic) })
    all.removeAll { topics.contains(ObjectIdentifier($0.topic)) }
  }

  /// Removes the commit of a topic, and returns it.
  mutating func take(of topic: any DurableTopic) -> [TopicCommit] {
    let found = all.filter { $0.topic === topic }
    remove(topic)
    return found
  }

  mutating func removeAll() { all = [] }

  mutating func replace(by commits: [TopicCommit]) { all = commits }

  /// Removes all commits, and returns them.
  mutating func takeAll() -> [TopicCommit] {
    defer { all = [] }
    return all
  }
}

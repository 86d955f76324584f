import SluiceIO

/// A visit to every topic, a share of them a turn, so that no turn is longer the more topics there are.
///
/// Topics are visited in byte order of their names. One that is made meanwhile is visited if its name comes behind the last one visited; one that is
/// deleted meanwhile may be left out.
enum TopicRound {
  /// Topics that are visited in one turn.
  static let share = 512

  /// Visits a first share at once, and the others in later turns. On `loop`.
  ///
  /// - Parameters:
  ///   - visit: called on `loop` with each topic.
  ///   - completion: called on `loop` behind the last visit; not when the loop ends before.
  static func run(
    over registry: TopicRegistry, on loop: any EventLoop, after name: String = "",
    visit: @escaping @Sendable (Topic) -> Void, completion: @escaping @Sendable () -> Void = {}
  ) {
    let (topics, more) = registry.page(after: name, atMost: share)
    for topic in topics { visit(topic) }
    guard more, let last = topics.last?.name else { return completion() }
    loop.execute {
      run(over: registry, on: loop, after: last, visit: visit, completion: completion)
    }
  }
}

import SluiceIO
import SluiceStore
import SluiceWire

/// The attempts after commits have failed: first changes that free space, then the commits themselves.
///
/// ```
///   light changes ─► deletions ─► truncations ─► trims ─► all together ─► one by one, the smallest first
/// ```
///
/// If the store rejected a commit for its contents, each topic's change is tried alone. The writer takes one step at a time, on one loop.
final class StoreRecovery {
  /// One commit, and its purpose.
  struct Step {
    enum What {
      /// Changes without records, which may fit even though a commit with larger changes failed.
      case light([TopicCommit])
      case deletion(TopicCommit)
      /// Drops the records that a topic's failed commit drops, without adding any.
      case truncation
      /// Drops records that have expired meanwhile.
      case trim(TopicCommitBuilder, DroppedRecords.Cause?)
      case all([TopicCommit])
      case one(TopicCommit)
      /// A topic's change alone, without the states that the store rejects.
      case alone(TopicCommit, rejected: [TopicChange.State])
    }

    var what: What
    var changes: [TopicChange]
  }

  private enum Plan {
    case light
    case deletion(any DurableTopic)
    case truncation(TopicCommit)
    case trim(any DurableTopic, TopicCommitBuilder)
    case reclaim
    case all
    case one(TopicCommit)
    case alone(TopicCommit)
    /// All commits were stored.
    case recovered
  }

  /// Owns the recovery.
  private unowned let writer: StoreWriter
  /// In reverse order: the last one is next.
  private var plans: [Plan]

  /// Tries the changes of a commit one by one, because the store rejected the commit for its contents.
  init(each commits: [TopicCommit], of writer: StoreWriter) {
    self.writer = writer
    plans = [.recovered] + commits.reversed().map { .alone($0) }
  }

  /// Retries failed commits.
  init(stuckOf writer: StoreWriter) {
    self.writer = writer
    plans = [.light]
    plans += writer.due.entries.values.filter { $0.topic.isDeleted }.map { .deletion($0.topic) }
    plans += writer.stuck.all.filter(\.truncatesAlone).map { .truncation($0) }
    plans += writer.builders.all.map { .trim($0.topic, $0.builder) }
    plans += [.reclaim, .all]
    plans.reverse()
  }

  /// Commits that haven't been tried alone yet, in order.
  var untried: [TopicCommit] {
    plans.reversed().compactMap { if case .alone(let commit) = $0 { commit } else { nil } }
  }

  // MARK: Steps

  /// The next commit to try; nil at the end.
  func next() -> Step? {
    while let plan = plans.popLast() {
      if let step = step(plan) { return step }
    }
    return nil
  }

  private func step(_ plan: Plan) -> Step? {
    let (now, wallClock) = (writer.loop.now, writer.loop.wallClock)
    switch plan {
    case .light:
      let light = Array(
        writer.stuck.all.lazy.filter { $0.change.batches.isEmpty }.prefix(writer.mostChanges))
      return light.isEmpty ? nil : Step(what: .light(light), changes: light.map(\.change))
    case .deletion(let topic):
      writer.removeDue(topic)
      guard let commit = writer.builder(of: topic).commit(topic, now: now, wallClock: wallClock) else {
        return nil
      }
      return Step(what: .deletion(commit), changes: [commit.change])
    case .truncation(let commit):
      guard let offset = commit.change.truncateBefore,
        writer.stuck.has(commit.topic)
      else { return nil }
      var change = TopicChange(commit.change.topic)
      change.truncateBefore = min(offset, commit.before.head)
      return Step(what: .truncation, changes: [change])
    case .trim(let topic, let builder):
      guard writer.builders.has(builder, of: topic),
        let (change, limit) = builder.trim(topic, wallClock: wallClock)
      else { return nil }
      return Step(what: .trim(builder, limit), changes: [change])
    case .reclaim:
      writer.reclaimAll()
      return nil
    case .all:
      let commits = Array(writer.stuck.all.prefix(writer.mostChanges))
      guard !commits.isEmpty else {
        writer.recovered()
        return nil
      }
      return Step(what: .all(commits), changes: commits.map(\.change))
    case .one(let commit): return Step(what: .one(commit), changes: [commit.change])
    case .alone(let commit):
      var change = commit.change
      change.states.removeAll { $0.violation != nil }
      let rejected = commit.change.states.filter { $0.violation != nil }
      return Step(what: .alone(commit, rejected: rejected), changes: [change])
    case .recovered:
      writer.stuck.removeAll()
      writer.recovered()
      return nil
    }
  }

  /// Handles the result of a step.
  ///
  /// - Parameters:
  ///   - step: the step that ``next()`` returned last.
  ///   - error: why the commit wasn't stored; nil if it was.
  ///   - start: when the step was begun.
  func conclude(_ step: Step, _ error: StoreError?, since start: MonotonicTime) {
    switch step.what {
    case .light(let commits):
      guard error == nil else { return }
      writer.stuck.remove(commits)
      for commit in commits { writer.done(commit) }
      plans.append(.light)
    case .deletion(let commit):
      guard error == nil else {
        writer.makeDue(commit.topic)
        commit.topic.undo(commit.taken)
        return drop { if case .deletion = $0 { true } else { false } }
      }
      writer.done(commit)
      writer.discardStuck(of: commit.topic)
    case .truncation: break
    case .trim(let builder, let limit):
      guard error == nil else { return drop { if case .trim = $0 { true } else { false } } }
      builder.trimmed(by: limit)
    case .all(let commits): concludeAll(commits, error, since: start)
    case .one(let commit):
      guard error == nil else { return plans = [] }
      writer.count([commit], since: start)
      writer.stuck.remove(commit.topic)
      writer.done(commit)
      if plans.isEmpty { writer.recovered() }
    case .alone(let commit, let rejected): concludeAlone(commit, rejected, error, since: start)
    }
  }

  private func drop(_ isMatch: (Plan) -> Bool) { plans.removeAll(where: isMatch) }

  private func concludeAll(_ commits: [TopicCommit], _ error: StoreError?, since start: MonotonicTime) {
    guard let error else {
      writer.count(commits, since: start)
      writer.stuck.remove(commits)
      if writer.stuck.isEmpty { writer.recovered() } else { plans.append(.all) }
      for commit in commits { writer.done(commit) }
      return
    }
    guard error.kind != .invalid else {
      plans = [.recovered] + writer.stuck.all.reversed().map { .alone($0) }
      return
    }
    writer.failed(error)
    plans = oneByOne(writer.stuck.all)
  }

  /// Plans the commits one by one, smallest first, because together they need too much space.
  private func oneByOne(_ commits: [TopicCommit]) -> [Plan] {
    guard commits.count > 1 else { return [] }
    return commits.sorted { $0.taken.bytes > $1.taken.bytes }.map { .one($0) }
  }

  private func concludeAlone(
    _ commit: TopicCommit, _ rejected: [TopicChange.State], _ error: StoreError?, since start: MonotonicTime
  ) {
    switch error?.kind {
    case nil:
      writer.count([commit], since: start)
      writer.stuck.remove(commit.topic)
      for state in rejected { report(commit.topic, state.violation?.message ?? "") }
      writer.done(commit, rejected: rejected)
    case .invalid:
      writer.stuck.remove(commit.topic)
      quarantine(commit, error?.message ?? "")
    default:
      writer.stuck.replace(by: [commit] + untried)
      if let error { writer.failed(error) }
      plans = oneByOne(writer.stuck.all)
    }
  }

  private func report(_ topic: any DurableTopic, _ message: String) {
    writer.service.metrics.add(.rejectedChanges)
    writer.service.report(.rejected(topic: topic.name, message: message))
  }

  /// Drops all waiting changes of a topic that can no longer be stored; clients get the reason.
  private func quarantine(_ commit: TopicCommit, _ message: String) {
    report(commit.topic, message)
    let fault = Fault(
      code: .storageFailed,
      message:
        "the store refuses records of topic \(commit.topic.name), and publishing to it has ended; delete the topic, or restart the broker to continue with the stored records"
    )
    writer.set(aside: commit.topic, commit.taken, fault)
  }
}

import SluiceIO
import SluiceLog
import SluiceWire
import Synchronization

// Settings that a client states when it uses a topic.
extension Topic {
  /// The result of a statement.
  package enum Statement {
    /// The topic has these settings.
    case holds
    /// This topic can't take the settings. It has had no record and has no attached client, so it can be replaced.
    case needsAnotherTopic
  }

  /// Gives the topic the settings that a client states, if it has none of its own and has had no record.
  ///
  /// From any loop. Attached clients stay attached, and producers keep their grants.
  ///
  /// - Parameters:
  ///   - stated: the settings that the client names.
  ///   - complete: the stated settings, completed by the defaults.
  ///   - isExact: whether settings that the client doesn't name must equal the defaults.
  /// - Throws: ``ErrorCode/topicExists`` if the topic has other settings that can't be replaced.
  package func adopt(
    _ stated: TopicSettings, completed complete: TopicSettings, isExact: Bool = false
  ) throws(WireError) -> Statement {
    var isNoted = false
    let (result, loopStates): (Result<Statement, WireError>, [TopicLoopState]) = state.withLock { state in
      if state.departure != nil { return (.success(.holds), []) }
      let settings = settings
      let isFixed =
        state.isStated || state.nextOffset > 0 || state.epoch.condition != .open || state.tail?.ending != nil
      if isFixed, let difference = (isExact ? complete : stated).difference(from: settings) {
        return (.failure(alreadyHas(difference, isStated: state.isStated)), [])
      }
      if isFixed || complete == settings {
        // Noted once, so that a repeated statement causes no write to disk.
        isNoted = !state.isStated
        state.isStated = true
        if isNoted { state.tail?.noteRow() }
        return (.success(.holds), [])
      }
      guard storage == nil, complete.storage == .memory, complete.compact != true, settings.compact != true
      else {
        if state.subscriptions == 0, state.budget.publications == 0 {
          return (.success(.needsAnotherTopic), [])
        }
        return (.failure(isInUse(complete.difference(from: settings) ?? "")), [])
      }
      take(complete, &state)
      return (.success(.holds), state.loopStates)
    }
    notify(loopStates)
    if isNoted { commit(within: .zero) }
    return try result.get()
  }

  /// With the lock held.
  private func take(_ complete: TopicSettings, _ state: inout State) {
    apply(complete, to: &state)
    state.isStated = true
    state.epoch.retain(complete, now: nil)
    connect(by: complete, &state)
    if complete.flow != .free { protectReaders(state) }
  }

  private func alreadyHas(_ difference: String, isStated: Bool) -> WireError {
    let why =
      isStated ? "other settings were stated for it before" : "it has had records with the broker's defaults"
    return WireError(
      .topicExists,
      "topic \(name) can't be given these settings (\(difference)): \(why); state the same, or change the topic's settings first"
    )
  }

  private func isInUse(_ difference: String) -> WireError {
    WireError(
      .topicExists,
      "topic \(name) can't be given these settings (\(difference)) while clients are attached to it, since it is durable or compact, or would be; create the topic before it is used"
    )
  }

  /// Whether a client has stated the settings.
  package var isStated: Bool { state.withLock { $0.isStated } }
}

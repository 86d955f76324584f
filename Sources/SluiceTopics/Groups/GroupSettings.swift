import CXXHash
import SluiceWire

extension JoinGroup {
  /// - Throws: ``ErrorCode/invalidSetting`` or ``ErrorCode/invalidName`` for settings that make no sense.
  package func validate() throws(WireError) {
    do {
      try TopicName.validate(group)
    } catch {
      throw WireError(error.code, "the group's name isn't one: \(error.message)")
    }
    guard settings.acknowledgement == .explicit else {
      guard settings.order == .any else {
        throw WireError(
          .invalidSetting,
          "a group keeps the order by key only with explicit acknowledgement; ask for that, too")
      }
      guard settings.deadline == 0, settings.deliveries == 0, settings.deadLetters.isEmpty,
        settings.retryBackoff == .none
      else {
        throw WireError(
          .invalidSetting,
          "a group's deadline, deliveries, dead letters and retry backoff need explicit acknowledgement; ask for that, too"
        )
      }
      return
    }
    let backoff = settings.retryBackoff
    guard backoff == .none || (backoff.first > 0 && backoff.first <= backoff.longest) else {
      throw WireError(
        .invalidSetting,
        "a retry backoff from \(backoff.first) ms to \(backoff.longest) ms isn't one; the first delay is at least 1 ms, and the longest isn't shorter"
      )
    }
    guard !settings.deadLetters.isEmpty else { return }
    do {
      try TopicName.validate(settings.deadLetters)
    } catch {
      throw WireError(error.code, "the dead letters' topic has a name that isn't one: \(error.message)")
    }
    guard settings.deadLetters != topic else {
      throw WireError(
        .invalidSetting, "the dead letters of \(topic) can't go to the same topic; name another")
    }
  }
}

extension JoinGroup.Settings {
  package var rules: GroupState.Rules {
    GroupState.Rules(
      isExplicit: acknowledgement == .explicit, isOrdered: order == .byKey,
      deadline: deadline == 0 ? nil : .milliseconds(Int64(deadline)), deliveries: deliveries,
      hasDeadLetters: !deadLetters.isEmpty, retryBackoff: retryBackoff,
      looksAtRecords: order == .byKey || !filter.isEmpty)
  }

  /// Examines the one record in `items`. Returns whether it is for the group, and the hash of its key if the order is by key.
  ///
  /// - Parameters:
  ///   - matcher: the filter's; nil for none.
  ///   - seed: the group's. Hashes stay the same as long as the group exists, also in another process, and no client can construct keys with the same hash.
  package func look(
    at items: UnsafeRawBufferPointer, _ matcher: RecordMatcher?, seed: UInt64
  ) -> (isWanted: Bool, key: UInt64?) {
    var iterator = unsafe BatchIterator(items, time: 0)
    guard let record = try? iterator.next() else { return (false, nil) }
    if let matcher {
      let kind = record.isAttributed ? RecordLayout.Kind.attributed : .plain
      guard let body = unsafe record.body.baseAddress, unsafe matcher.matches(kind, body) else {
        return (false, nil)
      }
    }
    guard order == .byKey, record.isAttributed, let key = unsafe (try? RecordAttributes(record.body))?.key
    else {
      return (true, nil)
    }
    return unsafe (true, xxh3_64bits(key.baseAddress, key.count, seed))
  }
}

extension JoinGroup.Settings {
  /// The first setting that differs in `other`, as text.
  func difference(to other: JoinGroup.Settings) -> String {
    if acknowledgement != other.acknowledgement {
      return "has \(other.acknowledgement) acknowledgement"
    }
    if order != other.order { return "has order \(other.order)" }
    if deadline != other.deadline { return "has a deadline of \(other.deadline) ms" }
    if deliveries != other.deliveries { return "has a limit of \(other.deliveries) deliveries" }
    if deadLetters != other.deadLetters {
      // Without the topic's name, which the client may lack the permission to see.
      return other.deadLetters.isEmpty ? "has no dead letters" : "has its dead letters in another topic"
    }
    if retryBackoff != other.retryBackoff {
      return "has a retry backoff from \(other.retryBackoff.first) ms to \(other.retryBackoff.longest) ms"
    }
    return "has another filter"
  }
}

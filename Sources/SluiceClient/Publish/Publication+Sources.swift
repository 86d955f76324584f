import ReactiveCore

// Publishers that feed the publication while its topic is connected.
extension Publication {
  /// Tells `source` from now on whether the topic is connected. From any thread.
  ///
  /// - Returns: false when the publication is over, or about to be.
  func add(_ source: SourceAttachment) -> Bool {
    let isAdded = lock.locked {
      guard case .active = unsafe phase else { return false }
      unsafe sources.append(source)
      return true
    }
    if isAdded { core.post(.becomeSource(self)) }
    return isAdded
  }

  func remove(_ source: SourceAttachment) {
    let removed = lock.locked {
      unsafe sources.firstIndex { $0 === source }.map { unsafe sources.remove(at: $0) }
    }
    _ = consume removed
  }

  /// Whether anything wants to know.
  var isSource: Bool { lock.locked { unsafe !sources.isEmpty } }

  /// On the loop: the broker says whether the topic is connected.
  func connected(_ isConnected: Bool) {
    isTopicConnected = isConnected
    notifySources()
  }

  /// On the loop: some may not know yet.
  func notifySources() {
    guard let isTopicConnected else { return }
    for source in lock.locked({ unsafe sources }) { source.connected(isTopicConnected) }
  }

  /// Lets go of an upstream, which was asked for so many records that won't come.
  func detach(_ upstream: SourceSubscriber, owing: Int) {
    let mustWake = lock.locked {
      guard
        let index = unsafe upstreams.firstIndex(where: { $0.combineIdentifier == upstream.combineIdentifier })
      else { return false }
      unsafe upstreams.remove(at: index)
      unsafe promised = unsafe max(promised - owing, 0)
      // Another one may have them.
      guard case .active = unsafe phase, unsafe !upstreams.isEmpty else { return false }
      return schedule()
    }
    if mustWake { core.post(.advance(self)) }
  }

  /// Under the lock: everything that feeds it, to be cancelled outside.
  func takeUpstreams() -> [any Cancellable] {
    let all: [any Cancellable] = unsafe upstreams + sources
    unsafe upstreams = []
    unsafe sources = []
    return all
  }
}

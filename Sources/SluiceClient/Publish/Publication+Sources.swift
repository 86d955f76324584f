import ReactiveCore

// The publication's sources, and the upstreams that it requests records from.
extension Publication {
  /// Adds a source, which is notified whether the topic is connected. From any thread.
  ///
  /// - Returns: false if the publication has ended, or is about to.
  func add(_ source: SourceAttachment) -> Bool {
    let isAdded = lock.withLock {
      guard case .active = unsafe phase else { return false }
      unsafe sources.append(source)
      return true
    }
    if isAdded { core.post(.becomeSource(self)) }
    return isAdded
  }

  func remove(_ source: SourceAttachment) {
    let removed = lock.withLock {
      unsafe sources.firstIndex { $0 === source }.map { unsafe sources.remove(at: $0) }
    }
    _ = consume removed
  }

  var isSource: Bool { lock.withLock { unsafe !sources.isEmpty } }

  /// On the loop: the broker reports whether the topic is connected.
  func connected(_ isConnected: Bool) {
    isTopicConnected = isConnected
    notifySources()
  }

  /// On the loop: passes on the broker's last report, also to sources that were added since.
  func notifySources() {
    guard let isTopicConnected else { return }
    for source in lock.withLock({ unsafe sources }) { source.connected(isTopicConnected) }
  }

  func attach(_ upstream: any Subscription) {
    var isAccepted = false
    update {
      guard case .active = unsafe phase else { return false }
      isAccepted = true
      unsafe upstreams.append(upstream)
      // Records requested from an upstream that was cancelled may never arrive.
      unsafe promised = 0
      return schedule()
    }
    if !isAccepted { upstream.cancel() }
  }

  /// Removes an upstream, of which `owing` requested records won't arrive.
  func detach(_ upstream: SourceSubscriber, owing: Int) {
    update {
      guard
        let index = unsafe upstreams.firstIndex(where: { $0.combineIdentifier == upstream.combineIdentifier })
      else { return false }
      unsafe upstreams.remove(at: index)
      unsafe promised = unsafe max(promised - owing, 0)
      // Another upstream may send them.
      guard case .active = unsafe phase, unsafe !upstreams.isEmpty else { return false }
      return schedule()
    }
  }

  /// Under the lock: takes the upstreams and sources, for the caller to cancel without the lock.
  func takeUpstreams() -> [any Cancellable] {
    let all: [any Cancellable] = unsafe upstreams + sources
    unsafe upstreams = []
    unsafe sources = []
    return all
  }
}

import Synchronization

/// What other threads, and subscribers on the loop, want of the loop, in order.
///
/// Nothing is done where it is asked for: so it makes no difference from which thread and from within which call that happens.
enum Command {
  // Subscriptions
  case open(RemoteSubscription)
  /// More was requested.
  case demand(RemoteSubscription)
  case cancel(RemoteSubscription)
  /// A member of a group has said something of its records.
  case settle(RemoteSubscription)

  // Publications
  case openPublication(Publication)
  /// There is something new to send, or to do at its end.
  case advance(Publication)
  /// Something is attached to it that wants to know whether the topic is connected.
  case becomeSource(Publication)

  // The client
  case request(Request)
  case close(ClientError)
}

struct Inbox: ~Copyable {
  private let commands = Mutex<[Command]>([])

  /// Returns true when the loop must be woken for it.
  func append(_ command: Command) -> Bool {
    commands.withLock {
      $0.append(command)
      return $0.count == 1
    }
  }

  /// Exchanges what has come for `batch`, which is empty.
  func take(into batch: inout [Command]) {
    commands.withLock { swap(&$0, &batch) }
  }
}

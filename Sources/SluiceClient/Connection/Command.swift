/// A step that another thread, or a subscriber on the loop, requests from the client.
///
/// The loop performs it later, in order, so the calling thread and the surrounding call make no difference.
enum Command {
  case open(Attachment)

  // Subscriptions
  /// The requested total or the commit has grown.
  case demand(RemoteSubscription)
  case cancel(RemoteSubscription)
  /// A group member has settled records.
  case settle(RemoteSubscription)

  // Publications
  /// It has something new to send, or its end has moved.
  case advance(Publication)
  /// A source was attached that follows whether the topic is connected.
  case becomeSource(Publication)

  case close(ClientError)
  /// Closes the client behind what it has accepted, at the latest after that time.
  case shutdown(within: Duration, Client.Completion<Void>)

  /// The node that serves the owner's stream; nil for the client's own broker.
  var node: DirectLink? {
    switch self {
    case .demand(let subscription), .cancel(let subscription), .settle(let subscription): subscription.node
    case .advance(let publication), .becomeSource(let publication): publication.node
    case .open, .close, .shutdown: nil
    }
  }
}

import SluiceWire

/// Texts about the cause and the age of a subscriber's backlog.
public enum SlownessText {
  /// The cause as a name for programs; empty without a backlog.
  public static func name(_ slowness: TopicInfo.Slowness) -> String {
    switch slowness {
    case .none: ""
    case .demand: "demand"
    case .client: "client"
    case .network: "network"
    case .unread: "unread"
    case .pace: "pace"
    default: "slowness \(slowness.rawValue)"
    }
  }

  /// "has requested nothing, for 12 s"; empty without a backlog.
  public static func cause(of subscription: TopicInfo.Subscription) -> String {
    let text =
      switch subscription.slowness {
      case .none: ""
      case .demand: "has requested nothing"
      case .client: "client doesn't read"
      case .network: "network is slow"
      case .unread: "client or network is slow"
      case .pace: "reads too slowly"
      default: name(subscription.slowness)
      }
    // The time of a slow reader is only the age of its backlog.
    let hasTime = subscription.slow > 0 && subscription.slowness != .pace
    return hasTime ? "\(text), for \(HoldText.time(subscription.slow))" : text
  }
}

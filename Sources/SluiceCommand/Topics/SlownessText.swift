import SluiceWire

/// Texts about why a subscriber is behind, and for how long.
public enum SlownessText {
  /// For programs; empty for a subscriber that isn't behind.
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

  /// "doesn't ask for more, for 12 s"; empty for a subscriber that isn't behind.
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
    // Of a slow reader the time is that of its lag.
    let hasTime = subscription.slow > 0 && subscription.slowness != .pace
    return hasTime ? "\(text), for \(HoldText.time(subscription.slow))" : text
  }
}

import SluiceWire

/// The words for the condition of a store, and for why a producer waits.
public enum StorageText {
  public static func state(_ state: StorageStatus.State) -> String {
    switch state {
    case .none: "none"
    case .working: "working"
    case .full: "full"
    case .failing: "failing"
    default: "state \(state.rawValue)"
    }
  }

  /// Why a producer has no demand; empty when that isn't known.
  public static func reason(_ reason: TopicInfo.Publication.WaitReason) -> String {
    switch reason {
    case .none: ""
    case .subscribers: "subscribers"
    case .storageFull: "storage full"
    case .storageFailed: "storage fails"
    case .storageBacklog: "storage backlog"
    case .memory: "memory"
    case .notConnected: "not connected"
    case .rate: "rate"
    default: "reason \(reason.rawValue)"
    }
  }
}

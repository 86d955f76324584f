/// Why a store can't do what it was asked for. What it had before is as it was.
public struct StoreError: Error, Hashable, Sendable, CustomStringConvertible {
  public enum Kind: Hashable, Sendable {
    /// The disk, the quota or the store's own limit leaves no room. The same may succeed when there is some again.
    case full
    /// The system reported an error.
    case failed
    /// Another process has the store open.
    case inUse
    /// There is no store, or not of this kind.
    case notAStore
    /// A later version of this software made it.
    case newer
    /// What is there contradicts itself.
    case damaged
    /// What the store was given can't be stored, whatever the state of the disk: it breaks a rule of the store, or doesn't follow on what is stored. The
    /// same is refused again; other changes aren't affected.
    case invalid
  }

  public var kind: Kind
  /// What was attempted, why it failed, and what can be done about it; with the path.
  public var message: String

  public init(_ kind: Kind, _ message: String) {
    self.kind = kind
    self.message = message
  }

  public var description: String { message }
}

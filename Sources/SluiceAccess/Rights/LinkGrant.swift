/// The operation that a signed link allows on its topic.
package enum LinkOperation: UInt8, Hashable, Sendable, CaseIterable {
  case read = 1
  case publish = 2

  package init?(named name: String) {
    guard let operation = Self.allCases.first(where: { "\($0)" == name }) else { return nil }
    self = operation
  }

  /// The right without which the link is refused.
  var right: Rights { self == .read ? .subscribe : .publish }
  /// All rights that the link passes on, as far as its maker has them.
  var rights: Rights { self == .read ? .subscribe : [.publish, .create] }
}

/// The part of a link that its holder's identity keeps.
public struct LinkGrant: Hashable, Sendable {
  let maker: Identity
  let operation: LinkOperation
  let topic: String
}

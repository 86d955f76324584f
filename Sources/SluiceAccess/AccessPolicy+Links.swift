import SluiceWire

// Links: an identity gives a part of its permissions to the holder of an address.
extension AccessPolicy {
  /// Makes a link.
  ///
  /// - Parameters:
  ///   - identity: the identity that makes it, under this policy.
  ///   - expires: the time from which the link is refused, in milliseconds since 1970.
  /// - Returns: its text, and when it expires: not after the identity's credentials.
  /// - Throws: `permissionDenied` where the identity may not do that itself, or came by a link; `invalidTopic`.
  package func link(
    _ operation: LinkOperation, on topic: String, by identity: Identity, until expires: Int64
  ) throws(WireError) -> (text: String, expires: Int64) {
    try TopicName.validate(topic)
    switch identity.proof {
    case .link: throw WireError(.permissionDenied, "a link can't make another one; its user makes links")
    case .node: throw WireError(.permissionDenied, "a node makes no links for its clients")
    case .none, .password, .token, .certificate: break
    }
    guard identity.permissions.rights(on: topic).contains(operation.right) else {
      throw WireError(
        .permissionDenied,
        "the client may not \(operation == .read ? "subscribe" : "publish") to \(topic), and makes no link for it"
      )
    }
    let expires = min(expires, identity.expires ?? .max)
    let maker = identity.based(on: linkKey.tag(of: identity.basis))
    return (SignedLink(operation, on: topic, until: expires, by: maker).signed(with: linkKey), expires)
  }

  /// The identity of a link's holder.
  func holder(ofLink text: String, now: Int64) throws(WireError) -> Identity {
    let link = try SignedLink(text, key: linkKey, now: now)
    let fingerprint = fingerprint(of: link.maker)
    let maker = link.maker.based(on: fingerprint)
    guard link.maker.basis == linkKey.tag(of: fingerprint), maker.expires.map({ now < $0 }) ?? true,
      let identity = holder(LinkGrant(maker: maker, operation: link.operation, topic: link.topic))
    else {
      throw WireError(
        .accessRevoked,
        "the user that has made the link may no longer be connected; make a link as another user")
    }
    return identity
  }

  /// The present fingerprint of what proves an identity; empty for proofs without one.
  private func fingerprint(of identity: Identity) -> [UInt8] {
    switch identity.proof {
    case .password: users[identity.name]?.fingerprint ?? []
    case .token(let key): tokenKeys[key]?.fingerprint ?? []
    case .none, .certificate, .node, .link: []
    }
  }

  /// The identity of a link's holder, with the present permissions of the link's maker; nil if the maker may no longer connect.
  func holder(_ grant: LinkGrant) -> Identity? {
    guard let maker = reconsider(grant.maker), let pattern = try? TopicPattern(grant.topic) else {
      return nil
    }
    let rights = maker.permissions.rights(on: grant.topic).intersection(grant.operation.rights)
    let rules = rights.contains(grant.operation.right) ? [Permissions.Rule(rights, on: pattern)] : []
    return Identity(
      name: maker.name, proof: .link(grant), permissions: Permissions(rules), carriesPermissions: true,
      expires: maker.expires)
  }
}

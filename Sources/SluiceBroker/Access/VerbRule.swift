import SluiceAccess
import SluiceWire

/// The requirements of a client's frame: a permission on a topic, ownership of an inbox, and an existing topic.
///
/// ``table`` has a rule for each frame that clients may send; a test compares it with the frame table. Permissions are checked before a topic is looked up,
/// so that neither the answer nor its time reveals whether the topic exists.
struct VerbRule: Hashable, Sendable {
  enum Permission: Hashable, Sendable {
    /// None: the frame is about the connection.
    case none
    /// None: the frame is about a stream that the client has opened, which needed a permission then.
    case stream
    /// Rights on the topic that the frame names.
    case rights(Rights)
    /// Rights on each topic that the frame selects; the others are left out of the answer.
    case rightsOnEach(Rights)
    /// Any right on the topic that the frame names.
    case sight
    /// Any right on each topic that the frame selects; the others are left out of the answer.
    case sightOfEach
    /// The right to administer every topic, by a permission on the pattern `>`.
    case broker
  }

  /// The requirement for an inbox if the client has only the rights that follow from the inbox's name.
  enum Inbox: Hashable, Sendable {
    /// Any client with the permission may use it: the frame only writes, or doesn't affect an inbox.
    case anyClient
    /// The client must own the inbox. An inbox without an owner becomes the client's.
    case claims
    /// The client must own the inbox.
    case owner
  }

  enum Absence: Hashable, Sendable {
    /// The frame names no topic, or creates the topic itself.
    case irrelevant
    /// The topic is created if the client has the right to create it.
    case creates
    /// ``ErrorCode/unknownTopic``.
    case fails
  }

  var permission: Permission
  var inbox = Inbox.anyClient
  var absence = Absence.irrelevant

  static func rule(for verb: FrameType) -> VerbRule {
    guard let rule = table[verb] else { preconditionFailure("\(verb) has no rule") }
    return rule
  }

  /// The rights on a topic that the verb needs; nil if it needs no particular right.
  static func rights(for verb: FrameType) -> Rights? {
    switch rule(for: verb).permission {
    case .rights(let rights), .rightsOnEach(let rights): rights
    case .none, .stream, .sight, .sightOfEach, .broker: nil
    }
  }

  static let table: [FrameType: VerbRule] = [
    .hello: VerbRule(permission: .none),
    .authenticate: VerbRule(permission: .none),
    .ping: VerbRule(permission: .none),
    .pong: VerbRule(permission: .none),
    .error: VerbRule(permission: .none),
    // About the stream that a node opens next; ignored from other clients.
    .origin: VerbRule(permission: .stream),
    .subscribe: VerbRule(permission: .rights(.subscribe), inbox: .claims, absence: .creates),
    .subscribePattern: VerbRule(permission: .rightsOnEach(.subscribe)),
    // Its dead-letter topic needs the permissions of PUBLISH_OPEN.
    .joinGroup: VerbRule(permission: .rights(.subscribe), inbox: .claims, absence: .creates),
    .publishOpen: VerbRule(permission: .rights(.publish), absence: .creates),

    .demand: VerbRule(permission: .stream),
    .cancel: VerbRule(permission: .stream),
    .complete: VerbRule(permission: .stream),
    .positions: VerbRule(permission: .stream),
    .publish: VerbRule(permission: .stream),
    .settle: VerbRule(permission: .stream),
    .commit: VerbRule(permission: .stream),
    .lend: VerbRule(permission: .stream),

    // The answer describes the topic, which may exist already.
    .topicCreate: VerbRule(permission: .rights(.create), inbox: .claims),
    .topicShow: VerbRule(permission: .sight, absence: .fails),
    .topicList: VerbRule(permission: .sightOfEach),
    .topicDelete: VerbRule(permission: .rights(.admin), absence: .fails),
    .topicConnect: VerbRule(permission: .rights(.admin), absence: .creates),
    .topicDisconnect: VerbRule(permission: .rights(.admin), absence: .creates),

    .cursorList: VerbRule(permission: .rights(.subscribe), inbox: .owner, absence: .fails),
    .cursorMove: VerbRule(permission: .rights(.admin), absence: .fails),
    .cursorDelete: VerbRule(permission: .rights(.admin), absence: .fails),

    .topicSet: VerbRule(permission: .rights(.admin), absence: .fails),
    .topicTrim: VerbRule(permission: .rights(.admin), absence: .fails),
    .stateList: VerbRule(permission: .rights(.admin), absence: .fails),
    .stateRestore: VerbRule(permission: .rights(.admin), absence: .fails),
    .connectionList: VerbRule(permission: .broker),
    .connectionClose: VerbRule(permission: .broker),
    .brokerShow: VerbRule(permission: .broker),
    .clusterShow: VerbRule(permission: .broker),
    .clusterDrain: VerbRule(permission: .broker),
    .clusterMove: VerbRule(permission: .broker),
  ]
}

import SluiceIO
import SluiceMQTT
import SluiceSession
import SluiceWire
import Synchronization

// CONNECT: the client's identity, then its session.
extension MQTTConnection {
  func connect(_ connect: MQTTConnect) {
    var credentials = Credentials.none
    if let password = connect.password {
      let secret = String(decoding: password, as: UTF8.self)
      if let user = connect.username, !user.isEmpty {
        credentials = .password(secret, user: user)
      } else {
        credentials = .token(secret)
      }
    } else if let user = connect.username, !user.isEmpty {
      credentials = .password("", user: user)
    }
    handle.shared.traffic.connects.add(1)
    link.adopt(transport.security)
    let name = connect.clientID.utf8.count <= Int(Limits.name) ? connect.clientID : ""
    let hello = Hello(
      maximumFrame: DoorLink.maximumFrame, keepalive: 0, name: name, credentials: credentials)
    guard hello.encoded(stream: 0).count <= Limits.handshakeFrame else {
      return refuse(.badCredentials, "the user name and the password are too long")
    }
    requested = connect
    link.send(hello, stream: 0)
  }

  func refuse(_ reason: MQTTReason, _ message: String) {
    play { session, output, perform in
      session.refused(reason, message, output: &output, perform)
    }
  }

  /// The broker has accepted the client: opens its session.
  func welcomed(_ welcome: Welcome) {
    guard let connect = requested.take() else { return }
    // The client has disconnected meanwhile.
    guard phase == .open else { return finish() }
    maximumFrame = welcome.maximumFrame
    hub.longestRecord.store(Int(welcome.maximumRecord), ordering: .relaxed)
    will = connect.will
    isLasting = connect.sessionExpiry > 0
    if isLasting || will != nil, hub.isDurable { keeping = MQTTKeeping() }
    let clientID = connect.clientID.isEmpty ? Self.newClientID() : connect.clientID
    let key = MQTTHub.Key(identity: welcome.identity, clientID: clientID)
    self.key = key
    let isKept = isLasting || keeping != nil
    hub.attach(key, to: self, isClean: connect.cleanStart, isKept: isKept) { [self] kept in
      admit(clientID, connect.cleanStart ? nil : kept)
    }
  }

  /// Returns an identifier for a client without one, of the greatest length that a string stores without an allocation.
  private static func newClientID() -> String {
    "auto" + String(UInt64.random(in: smallestClientNumber..<smallestClientNumber * 36), radix: 36)
  }

  /// The smallest number of eleven digits.
  private static let smallestClientNumber: UInt64 = 3_656_158_440_062_976

  private func admit(_ clientID: String, _ kept: MQTTKeptSession?) {
    guard phase == .open else {
      if let key { hub.detach(key, self) }
      return
    }
    if isLasting, kept == nil, let key, !hub.hasRoom(for: key) {
      refuse(Self.noRoom.reason, Self.noRoom.message)
      return endTurn()
    }
    if let kept {
      progress = MQTTProgress(kept)
      topics = MQTTTopicTable(kept.topics)
    } else if isLasting {
      progress = MQTTProgress(producer: UInt64.random(in: 1 ... .max))
    }
    // CONNACK reports a session, so it must be stored before.
    keeping?.want()
    let now = loop.now.nanoseconds
    play { session, output, perform in
      session.connected(
        MQTTAdmission(clientID: clientID, state: kept?.state), now: now, output: &output, perform)
    }
    takeUnread()
    endTurn()
  }
}

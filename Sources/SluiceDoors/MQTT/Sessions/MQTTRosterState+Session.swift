import SluiceMQTT

extension MQTTRosterState {
  /// The stored form of a session, with its will as a separate field.
  init(_ session: MQTTKeptSession?) {
    guard var session else { return }
    if let will = session.will.take() {
      self.will = will.roster
      willDelay = min(will.delay, session.expiry)
    }
    expiry = session.expiry
    session.leftAt = nil
    if !session.state.isEmpty { bytes = session.encoded }
  }
}

extension MQTTConnect.Will {
  /// The will in the roster's form: within an otherwise empty session.
  var roster: [UInt8] {
    var session = MQTTKeptSession(state: [], producer: 0, topics: [:], positions: [:], exact: [:], expiry: 0)
    session.will = self
    return session.encoded
  }

  init?(roster bytes: [UInt8]) {
    guard let will = (try? MQTTKeptSession(decoding: bytes))?.will else { return nil }
    self = will
  }
}

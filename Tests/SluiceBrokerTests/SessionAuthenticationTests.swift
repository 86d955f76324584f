import SluiceSession
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

struct SessionAuthenticationTests {
  private static let password = Credentials.password("secret", user: "ada")
  private static let token = Credentials.token("abc")

  private static func hello(_ credentials: Credentials) -> Hello {
    Hello(maximumFrame: 1 << 20, keepalive: 0, name: "client", credentials: credentials)
  }

  // MARK: The handshake

  @Test(arguments: [Credentials.none, password, token])
  func whereNobodyIsAskedCredentialsAreIgnored(credentials: Credentials) {
    var probe = SessionProbe()
    #expect(probe.receive(Self.hello(credentials), stream: 0) == .welcome(client: "client"))
    #expect(probe.session.phase == .open)
  }

  @Test(arguments: [Credentials.none, password, token])
  func whereSomebodyIsAskedTheHandshakeWaits(credentials: Credentials) {
    var probe = SessionProbe()
    probe.rules.asksIdentity = true
    #expect(probe.receive(Self.hello(credentials), stream: 0) == .authenticate(credentials))
    #expect(probe.session.phase == .authenticating)
    probe.session.admitted()
    #expect(probe.session.phase == .open)
    #expect(probe.receive(Ping(token: 1), stream: 0) == .pong(token: 1))
  }

  @Test func nothingIsTakenBeforeTheAnswer() {
    let frames = [
      Self.hello(Self.token).encoded(stream: 0), Ping(token: 1).encoded(stream: 0),
      Subscribe(topic: "t", grantedThrough: 1).encoded(stream: 1), Cancel().encoded(stream: 1),
      Authenticate(Self.token).encoded(stream: 1),
      Fault(code: .malformedFrame, message: "").encoded(stream: 1),
    ]
    for frame in frames {
      var probe = SessionProbe.asking(Self.password)
      #expect(probe.receive(raw: frame) == .connectionError(.unexpectedFrame))
      #expect(probe.session.phase == .authenticating)
    }
  }

  @Test func aClientThatWaitsMaySayWhyItLeaves() {
    var probe = SessionProbe.asking(Self.password)
    #expect(probe.receive(Fault(code: .malformedFrame, message: ""), stream: 0) == .nothing)
    #expect(probe.session.phase == .authenticating)
  }

  @Test func onlyWhoWaitsIsAdmitted() {
    var probe = SessionProbe()
    probe.session.admitted()
    #expect(probe.session.phase == .handshake)
    probe = .open()
    probe.session.drain()
    probe.session.admitted()
    #expect(probe.session.phase == .draining)
  }

  @Test func aMethodThatIsntKnownEndsTheHandshake() {
    var probe = SessionProbe()
    probe.rules.asksIdentity = true
    var frame = Self.hello(.none).encoded(stream: 0)
    frame[frame.count - 5] = 4
    #expect(probe.receive(raw: frame) == .connectionError(.unsupported))
    #expect(probe.session.phase == .handshake)
  }

  // MARK: Renewal

  @Test func newCredentialsAreARequest() {
    var probe = SessionProbe.open()
    #expect(probe.receive(Authenticate(Self.token), stream: 2) == .renew(stream: 2, Self.token))
    let request = probe.session.request(on: 2)
    #expect(request != nil)
    probe.session.renewed()
    #expect(probe.answers(request) == true)
    #expect(probe.receive(Authenticate(Self.password), stream: 2) == .renew(stream: 2, Self.password))
  }

  @Test func oneAtATimeIsVerified() {
    var probe = SessionProbe.open()
    _ = probe.receive(Authenticate(Self.token), stream: 1)
    #expect(probe.receive(Authenticate(Self.token), stream: 2) == .fault(stream: 2, .tooManyAttempts))
    // Also after the first request was cancelled: its verification continues.
    #expect(probe.receive(Cancel(), stream: 1) == .confirmCancel(stream: 1))
    #expect(probe.receive(Authenticate(Self.token), stream: 1) == .fault(stream: 1, .tooManyAttempts))
    probe.session.renewed()
    #expect(probe.receive(Authenticate(Self.token), stream: 1) == .renew(stream: 1, Self.token))
  }

  @Test func aRenewalThatCantBeReadDoesntStandInTheWay() {
    var probe = SessionProbe.open()
    var frame = Authenticate(Self.token).encoded(stream: 1)
    frame[FrameHeader.size] = 9
    #expect(probe.receive(raw: frame) == .fault(stream: 1, .unsupported))
    #expect(probe.receive(Authenticate(Self.token), stream: 1) == .renew(stream: 1, Self.token))
    #expect(probe.receive(raw: frame) == .connectionError(.invalidStream))
  }

  @Test func aBrokerThatStopsRenewsNothing() {
    var probe = SessionProbe.open()
    probe.session.drain()
    #expect(probe.receive(Authenticate(Self.token), stream: 1) == .fault(stream: 1, .shuttingDown))
  }
}

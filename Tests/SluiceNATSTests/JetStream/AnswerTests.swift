import Testing

@testable import SluiceNATS

@Suite("Reading JetStream's answers")
struct AnswerTests {
  @Test(
    "an acknowledgement is read in place as it is as JSON",
    arguments: [
      (#"{"stream":"S","seq":3}"#, PublishAcknowledgement(stream: "S", sequence: 3)),
      (
        #"{"stream":"S","seq":3,"batch":"b1","count":3}"#,
        PublishAcknowledgement(stream: "S", sequence: 3, count: 3)
      ),
      (
        #"{"stream":"S","seq":6,"duplicate": true}"#,
        PublishAcknowledgement(stream: "S", sequence: 6, isDuplicate: true)
      ),
      (" { \"stream\" : \"S\" ,\r\n\t\"seq\":1 } ", PublishAcknowledgement(stream: "S", sequence: 1)),
      (
        #"{"stream":"S","domain":"d","seq":9223372036854775807}"#,
        PublishAcknowledgement(stream: "S", sequence: 1 << 63 - 1)
      ),
    ])
  func acknowledgements(json: String, expected: PublishAcknowledgement) throws {
    try bytes(json).withBytes { json throws(NATSError) in
      #expect(PublishAcknowledgement(scanning: json) == expected)
      #expect(try PublishAcknowledgement(decoding: json, server: "s") == expected)
    }
  }

  @Test(
    "what is unusual isn't read in place",
    arguments: [
      "", "{}", "{", #"{"stream":"S"}"#, #"{"seq":3}"#, #"{"stream":"S","seq":0}"#,
      #"{"stream":"S","seq":-1}"#,
      #"{"stream":"S","seq":1.5}"#, #"{"stream":"S","seq":01}"#, #"{"stream":"\u0053","seq":3}"#,
      #"{"stream":"S","seq":3,"new":1}"#, #"{"stream":"S","seq":3}x"#, #"{"stream":"S","seq":3,}"#,
      #"{"stream":"S","seq":3 "count":1}"#, #"{"stream":"S","seq":99999999999999999999}"#,
      #"{"stream":"S","seq":3,"error":{"code":400}}"#, #"{"stream":"S","seq":3,"seq":4}"#, "[]", "nul",
    ])
  func unusual(json: String) throws {
    try bytes(json).withBytes { #expect(PublishAcknowledgement(scanning: $0) == nil) }
  }

  @Test("JSON that is read otherwise is still an acknowledgement")
  func fallback() throws {
    try bytes(#"{"stream":"\u0053","seq":3,"new":{"a":[1]}}"#).withBytes { json throws(NATSError) in
      #expect(
        try PublishAcknowledgement(json, server: "s") == PublishAcknowledgement(stream: "S", sequence: 3))
    }
    try bytes("not JSON").withBytes { json in
      let error = #expect(throws: NATSError.self) { try PublishAcknowledgement(json, server: "s") }
      #expect(error?.code == .malformedAnswer)
    }
  }

  @Test(
    "the engine's errors have codes, and only some prove that nothing was stored",
    arguments: [
      (10071, "wrong last sequence: 17", "wrong-last-sequence", true),
      (10164, "wrong last sequence", "wrong-last-sequence", true),
      (10059, "stream not found", "stream-not-found", true),
      (10058, "stream name already in use", "stream-exists", false),
      (10047, "insufficient storage resources available", "resources-exhausted", false),
      (10077, "maximum bytes exceeded", "resources-exhausted", false),
      (10077, "disk on fire", "refused", false),
      (10008, "JetStream system temporarily unavailable", "unavailable", false),
      (10076, "JetStream not enabled", "unavailable", false),
      (10176, "atomic publish batch is incomplete", "batch-refused", true),
      (10174, "atomic publish is disabled", "batch-refused", true),
      (10210, "atomic publish too many inflight", "batch-refused", true),
      (10037, "no message found", "message-not-found", false),
      (10014, "consumer not found", "consumer-not-found", false),
      (10166, "per-message TTL is disabled", "invalid-request", true),
      (19_999, "something new", "refused", false),
    ])
  func errors(number: Int, text: String, code: String, isProof: Bool) throws {
    let json = #"{"error":{"code":400,"err_code":\#(number),"description":"\#(text)"},"stream":"S","seq":0}"#
    try bytes(json).withBytes { json in
      let error = #expect(throws: NATSError.self) { try PublishAcknowledgement(json, server: "n1 (a:4222)") }
      #expect(error?.code.description == code)
      #expect(error?.engineCode == number)
      #expect(error?.stream == "S")
      #expect(error?.provesNothingWasStored == isProof)
      #expect(error?.lastSequence == (number == 10071 ? 17 : nil))
      #expect(error?.description.contains("(stream S, server n1 (a:4222))") == true)
    }
  }

  @Test("a delivered message's position is read with a domain or without")
  func positions() throws {
    func position(_ text: String) throws -> DeliveryPosition? {
      try bytes(text).withBytes { DeliveryPosition($0) }
    }
    let plain = try #require(try position("$JS.ACK.C.w1.1.30.3.1795422019436341914.7"))
    #expect((plain.streamSequence, plain.consumerSequence, plain.pending) == (30, 3, 7))
    #expect(try position("$JS.ACK.dom.hash.C.w1.1.30.3.1795422019436341914.7") == plain)
    #expect(try position("$JS.ACK.dom.hash.C.w1.1.30.3.1795422019436341914.7.token") == plain)
    for text in [
      "", "$JS.ACK.", "$JS.ACK.C.w1.1.x.3.1.7", "$JS.ACK.C.w1.1.30.3.17", "_INBOX.a.b.c.1.1.1.1.1",
    ] {
      #expect(try position(text) == nil)
    }
  }

  @Test(
    "versions are compared by their numbers",
    arguments: [
      ("2.15.1", true), ("2.15.2", true), ("2.16.0-dev", true), ("3.0", true), ("2.15.1-rc.1", false),
      ("2.15.0", false), ("2.9.30", false), ("", false), ("new", false),
    ])
  func versions(version: String, isGood: Bool) {
    #expect(EngineServer(name: "n", version: version).objections().isEmpty == isGood)
  }

  @Test("a server that doesn't sync, or has no JetStream, is objected to by name")
  func objections() {
    let server = EngineServer(
      name: "n7", version: "2.15.1", syncsAlways: false, syncInterval: 120_000_000_000)
    #expect(server.objections().count == 1)
    #expect(server.objections().first?.contains("n7") == true)
    #expect(server.objections().first?.contains("sync_interval: always") == true)
    #expect(EngineServer(name: "n", version: "2.15.1", hasJetStream: false).objections().count == 1)
  }
}

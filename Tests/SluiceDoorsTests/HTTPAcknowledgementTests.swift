import SluiceStore
import SluiceWire
import Testing

@testable import SluiceDoors

/// When a publication is answered, and which client its idempotency key belongs to.
@Suite struct HTTPAcknowledgementTests {
  @Test func anAnswerIsAsDurableAsAsked() throws {
    let stage = try HTTPStage(store: MemoryStore())
    for ack in ["received", "durable"] {
      let answer = stage.publish("t?ack=\(ack)", "x")
      #expect(answer.status == 200)
      #expect(answer.body.contains("\"lastOffset\":"), "\(answer)")
    }
    let memory = try HTTPStage().publish("t?ack=durable", "x")
    #expect(memory.status == 400)
    #expect(memory.body.contains("kept in memory"), "\(memory)")
  }

  @Test func withoutAnAcknowledgementTheRecordsAreTakenAllTheSame() throws {
    let stage = try HTTPStage()
    let answer = stage.publish("t?ack=none&lines", "a\nb\nc")
    #expect(answer.status == 202)
    #expect(answer.body == "{\"topic\":\"t\",\"records\":3}\n")
    #expect(try NativeClient(stage.door).show("t").summary.nextOffset == 3)
    #expect(stage.publish("t?ack=soon", "a").status == 400)
  }

  @Test func aKeyIsItsIdentitysOwn() {
    let numbers = Set(
      [("a", "x"), ("b", "x"), ("", "ax"), ("a", "y"), ("ax", "")].map {
        HTTPPublishing.producer($1, of: $0)
      })
    #expect(numbers.count == 5)
    #expect(!numbers.contains(0))
    #expect(HTTPPublishing.producer("x", of: "a") == HTTPPublishing.producer("x", of: "a"))
  }
}

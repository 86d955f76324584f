import Dispatch
import ReactiveCore
import ReactiveTestSupport
import Synchronization
import Testing

/// Subjects, and publishers that share one subscription, used by several threads.
@Suite struct ConcurrencyTests {
  @Test func aPassthroughSubjectWithstandsRaces() {
    expectHubWithstandsRaces { RaceHub(PassthroughSubject<Int, Oops>()) }
  }

  @Test func aCurrentValueSubjectWithstandsRaces() {
    expectHubWithstandsRaces { RaceHub(CurrentValueSubject<Int, Oops>(-1)) }
  }

  @Test func aSharedPublisherWithstandsRaces() {
    expectHubWithstandsRaces {
      let subject = PassthroughSubject<Int, Oops>()
      return RaceHub(subject, subject.map { $0 }.share())
    }
  }

  @Test func aMulticastPublisherWithstandsRaces() {
    expectHubWithstandsRaces {
      let subject = PassthroughSubject<Int, Oops>()
      return RaceHub(subject, subject.multicast { PassthroughSubject<Int, Oops>() }.autoconnect())
    }
  }

  @Test func aMulticastCurrentValueWithstandsRaces() {
    expectHubWithstandsRaces {
      let subject = PassthroughSubject<Int, Oops>()
      return RaceHub(subject, subject.multicast(subject: CurrentValueSubject<Int, Oops>(-1)).autoconnect())
    }
  }

  /// A subscriber that requests values one by one while other threads send gets the latest value in the end.
  @Test func theCurrentValueIsNeverStaleForOneWhoAsksMeanwhile() {
    for _ in 0..<100 {
      let subject = UncheckedBox(CurrentValueSubject<Int, Oops>(-1))
      let subscriber = StrictSubscriber(nil)
      subject.value.subscribe(subscriber)
      DispatchQueue.concurrentPerform(iterations: 3) { thread in
        for number in 0..<100 {
          if thread > 0 {
            subject.value.send(thread * 100_000 + number)
          } else {
            subscriber.request(.max(1))
          }
        }
      }
      subscriber.request(.max(1_000))
      #expect(subscriber.values.last == subject.value.value)
      #expect(subscriber.violations == 0)
    }
  }

  /// A connection that is cancelled while another is made leaves nothing behind.
  @Test func connectingAndCancellingMayRace() {
    for _ in 0..<100 {
      let subject = UncheckedBox(PassthroughSubject<Int, Oops>())
      let multicast = UncheckedBox(subject.value.multicast { PassthroughSubject<Int, Oops>() })
      let subscriber = StrictSubscriber(.unlimited)
      multicast.value.subscribe(subscriber)
      DispatchQueue.concurrentPerform(iterations: 3) { thread in
        for number in 0..<20 {
          if thread > 0 {
            subject.value.send(thread * 100_000 + number)
          } else {
            multicast.value.connect().cancel()
          }
        }
      }
      let count = subscriber.values.count
      subject.value.send(900_000)
      #expect(subscriber.values.count == count)
      #expect(subscriber.violations == 0)
    }
  }
}

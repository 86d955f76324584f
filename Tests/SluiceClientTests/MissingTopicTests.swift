import ReactiveCore
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceClient

/// Subscriptions that should fail if their topic is missing, instead of creating it.
@Suite struct MissingTopicTests {
  private func plan(_ topic: String) -> SubscriptionPlan {
    var plan = SubscriptionPlan(topic)
    plan.ifMissing = .fail
    return plan
  }

  @Test func aSubscriptionToAMissingTopicFailsAndCreatesNothing() throws {
    let stage = try Stage()
    let client = try stage.client()
    let recorder = Recorder<TopicRecord>()
    client.topic(plan("t")).subscribe(recorder)
    #expect(stage.world.run { recorder.completion != nil })
    #expect(recorder.history == [.subscription, .failure(.unknownTopic)])
    #expect(try stage.subscriptions("t", client) == nil)
  }

  @Test func aMemberOfAGroupOfAMissingTopicFailsAndCreatesNothing() throws {
    let stage = try Stage()
    let client = try stage.client()
    let recorder = Recorder<TopicRecord>()
    var group = plan("t")
    group.membership = Membership(group: "g", options: GroupOptions())
    client.topic(group).subscribe(recorder)
    #expect(stage.world.run { recorder.completion != nil })
    #expect(recorder.history == [.subscription, .failure(.unknownTopic)])
    #expect(try stage.subscriptions("t", client) == nil)
  }

  @Test func aTopicThatIsThereIsSubscribedTo() throws {
    let stage = try Stage()
    let client = try stage.client()
    try stage.publish(["a"], to: "t", with: client)
    let recorder = Recorder<TopicRecord>()
    client.topic(plan("t")).subscribe(recorder)
    #expect(stage.world.run { recorder.values == ["a"] })
  }

  /// The same applies when the subscription resumes after a lost connection: the broker may have lost the topic.
  @Test func aTopicThatIsGoneAfterALostConnectionIsNotCreatedAnew() throws {
    let stage = try Stage()
    let client = try stage.persistentClient()
    // A publication would create the topic again, too.
    let publisher = try stage.client("publisher")
    try stage.publish(["a"], to: "t", with: publisher)
    let recorder = Recorder<TopicRecord>()
    client.topic(plan("t")).subscribe(recorder)
    #expect(stage.world.run { recorder.values == ["a"] })
    stage.crash()
    try stage.restart()
    #expect(stage.world.run { recorder.completion != nil })
    #expect(recorder.completion == .failure(.unknownTopic))
    #expect(try stage.subscriptions("t", client) == nil)
  }
}

import type { Log } from '../../../base/log.ts'
import type { Activity } from '../../live/activity.ts'
import type { Message } from '../message.ts'
import { Intake, type IntakeOptions } from './intake.ts'

interface SourcesDeps {
  readonly webhookId: string
  /** The messages of activities, in order; none for one that is not sent. */
  readonly messagesOf: (activities: readonly Activity[]) => Promise<readonly Message[]>
  readonly add: (message: Message, intake: Intake) => void
  /** Messages have been added. */
  readonly onMessages: () => void
  readonly log: Log
}

const ACTIVITIES_AT_ONCE = 50

/** The parts of the log that an endpoint delivers, and the messages of what arrives from them. */
export class Sources {
  private readonly intakes: Intake[] = []
  private isBuilding = false
  private hasEnded = false

  constructor(private readonly deps: SourcesDeps) {}

  /** Starts to deliver a part of the log. @throws ApiError as `Hub.subscribe` */
  open(options: Omit<IntakeOptions, 'onArrival'>): Intake {
    const intake = new Intake({ ...options, onArrival: () => void this.build() })
    this.intakes.push(intake)
    return intake
  }

  /** Ends a part of the log. What has become a message is still delivered. */
  close(intake: Intake): void {
    intake.end()
    this.intakes.splice(this.intakes.indexOf(intake), 1)
  }

  /** Nothing more arrives. */
  end(): void {
    this.hasEnded = true
    for (const intake of this.intakes) intake.end()
  }

  /** Makes messages of what has arrived, as far as there is room. What fails is tried again by the next call. */
  async build(): Promise<void> {
    if (this.isBuilding) return
    this.isBuilding = true
    try {
      for (;;) {
        const intake = this.intakes.find(({ mayBuild }) => mayBuild)
        if (intake === undefined || this.hasEnded) break
        await this.buildSome(intake)
      }
    } catch (error) {
      const { log, webhookId } = this.deps
      log.info('webhooks: cannot make messages; trying again', { webhook_id: webhookId, error })
    }
    this.isBuilding = false
  }

  private async buildSome(intake: Intake): Promise<void> {
    const activities = intake.next(ACTIVITIES_AT_ONCE)
    const messages = await this.deps.messagesOf(activities)
    if (this.hasEnded || !this.intakes.includes(intake)) return
    intake.taken(activities.length)
    const sent = new Set<number>()
    for (const message of messages) {
      sent.add(message.seq)
      intake.resize(message.seq, message.body.length)
      this.deps.add(message, intake)
    }
    for (const { seq } of activities) if (!sent.has(seq)) intake.finish(seq)
    this.deps.onMessages()
  }
}

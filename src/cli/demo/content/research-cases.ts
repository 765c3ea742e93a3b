export interface ResearchCase {
  readonly question: string
  readonly queries: readonly string[]
  readonly sources: readonly { readonly url: string; readonly says: string }[]
  readonly answer: string
  /** What the analyst asks afterwards, in the same session. */
  readonly followUp?: { readonly question: string; readonly answer: string }
}

export const RESEARCH_CASES: readonly ResearchCase[] = [
  {
    question: 'How do our competitors handle returns of worn helmets?',
    queries: ['helmet return policy worn', 'bicycle shop hygiene returns EU'],
    sources: [
      { url: 'https://velostore.example/returns', says: 'Helmets: 30 days, if the hygiene seal is intact.' },
      { url: 'https://radhaus.example/agb', says: 'Getragene Helme sind vom Umtausch ausgeschlossen.' },
      { url: 'https://cyclebarn.example/help/returns', says: 'Worn helmets are exchanged once for another size.' },
    ],
    answer:
      'Of three competitors, one refuses worn helmets, one accepts them only with an intact seal, and **CycleBarn exchanges them once for another size**. Ours (14 days, unworn) is in the middle.',
    followUp: {
      question: "What would an exchange like CycleBarn's cost us?",
      answer:
        "With last year's 1,140 size returns and a resale of 60 % after cleaning, about **EUR 19,000 a year**, or EUR 16.70 per exchange.",
    },
  },
  {
    question: 'Which EU countries changed the VAT on bicycle repairs since 2024?',
    queries: ['VAT bicycle repair reduced rate 2024 2025', 'TEDB minor repairs bicycles'],
    sources: [
      {
        url: 'https://taxation-customs.example/tedb',
        says: 'Reduced rates for minor repairs of bicycles: list by country.',
      },
      {
        url: 'https://ecf.example/vat',
        says: 'Member states may apply reduced rates to the supply and repair of bicycles.',
      },
    ],
    answer:
      'Two of the nine countries we ship to changed it. The others kept theirs; the list with rates and dates is attached. Please have the accountant confirm the dates before we change the checkout.',
  },
  {
    question: 'What do reviews of the Linden e-bike complain about most this quarter?',
    queries: ['Linden e-bike review', 'Linden commuter battery problem', 'Linden brake squeal'],
    sources: [
      { url: 'https://reviews.example/linden?page=1', says: '38 reviews, 11 mention the range in winter.' },
      { url: 'https://forum.example/t/linden-squeal', says: 'The rear brake squeals when wet; new pads solved it.' },
      { url: 'https://reviews.example/linden?page=2', says: '31 reviews, 7 mention the kickstand.' },
    ],
    answer:
      '1. **Range in winter** (11 of 69 reviews)\n2. **Rear brake squeals when wet** (9), solved by other pads\n3. **Kickstand too short** (7)\n\nOnly the second is a fault; the first needs an honest figure on the product page.',
    followUp: {
      question: 'Draft one sentence on the winter range for the product page.',
      answer:
        '"Expect 60 to 85 km in summer, and about a third less near freezing: cold batteries give less, and recover."',
    },
  },
  {
    question: '量子センサーを使った自転車用ナビの研究はありますか。一段落でまとめてください。',
    queries: ['quantum sensor navigation bicycle', '量子センサー ナビゲーション 自転車'],
    sources: [
      {
        url: 'https://arxiv.example/abs/2503.01234',
        says: 'Cold-atom accelerometers for GNSS-denied navigation: 40 kg, 300 W.',
      },
      { url: 'https://jstage.example/article/qsens', says: '小型化は車載用途までが現実的とされる。' },
    ],
    answer:
      '自転車用の研究は見つかりませんでした。量子加速度計は装置が約 40 kg、300 W と大きく、現在は船舶や車両での GNSS 補完が対象です。',
  },
  {
    question: 'Compare the warranty terms of the five best-selling cargo bikes.',
    queries: ['cargo bike warranty frame years', 'cargo bike warranty battery cycles'],
    sources: [
      { url: 'https://cargo-one.example/warranty', says: 'Frame 10 years, battery 2 years or 500 cycles.' },
      { url: 'https://lastenrad.example/garantie', says: 'Rahmen 5 Jahre, Akku 2 Jahre.' },
      { url: 'https://boxbike.example/terms', says: 'Frame for life for the first owner, battery 3 years.' },
    ],
    answer:
      '| bike | frame | battery |\n|---|---|---|\n| Cargo One | 10 years | 2 years or 500 cycles |\n| Lastenrad 4 | 5 years | 2 years |\n| BoxBike | life, first owner | 3 years |\n\nTwo makers publish no terms; I asked both by e-mail.',
  },
]

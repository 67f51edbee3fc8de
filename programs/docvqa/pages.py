"""The pages of the sample, as text, and the script that draws them: `python pages.py`, which needs Pillow.

Each page is drawn as a PNG of two colours. The file also carries its text in an `iTXt` chunk, as scanners store what
they recognised, so that the script in place of a model can read it.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).with_name("data") / "pages"
SIZE = (620, 800)
PAGES = {
    "harbour-memo": """
        == Memorandum ==
        To: Harbour Board
        From: Ines Okafor, Superintendent
        Date: 14 February 1961
        Subject: Dredging of the north basin
        The dredger Mallard will be hired for 23 days from 6 March.
        Estimated cost: $18,450.00
        Copies to: R. Lindqvist, T. Abara
        """,
    "bakery-invoice": """
        == Invoice ==
        Wheatear Bakery, 8 Mill Lane, Ostby
        Invoice No.: 2207-B
        Date: 03/11/1974
        Item | Quantity | Price
        Rye loaves | 40 | $22.00
        Seed rolls | 150 | $37.50
        Honey cake | 6 | $27.00
        Total: $86.50
        Payment due: within 30 days
        """,
    "seed-trial": """
        == Field trial of barley, season 1982 ==
        Station: Corran Moor
        Variety | Sown | Yield (t/ha) | Lodging
        Aldis | 21 March | 5.3 | none
        Brage | 23 March | 6.1 | slight
        Corvin | 23 March | 4.8 | severe
        Principal investigator: Dr. M. Teixeira
        Next report: June 1983
        """,
    "clinic-form": """
        == Patient registration ==
        Name: Ottoline Brandt
        Date of birth: 9 May 1938
        Occupation: piano tuner
        Physician: Dr. Suleiman Haddad
        Known allergies: penicillin
        == In an emergency ==
        Name: Casper Brandt
        Telephone: 0417-552
        """,
    "rail-timetable": """
        == Timetable of the Fell Line, from 1 October ==
        Station | Up train | Down train
        Askrigg Bridge | 7.05 | 18.40
        Low Haber | 7.31 | 18.14
        Haber Junction | 7.58 | 17.47
        Cattle trucks: Tuesdays only
        Station master: Edith Pargeter
        """,
    "soap-letter": """
        == Linden & Sons, soap makers ==
        9 August 1955
        Dear Mr. Vasquez,
        Thank you for the sample of lavender oil, batch 71-C.
        We shall order 12 drums at $31.75 each.
        Please ship to our works at Gate 4, Quay Street.
        Yours sincerely,
        Harriet Linden, Purchasing
        """,
    "library-report": """
        == Annual report of the county library ==
        Year | Members | Loans
        1967 | 4,112 | 61,908
        1968 | 4,390 | 66,254
        1969 | 4,871 | 70,033
        Librarian: Miss J. Farquhar
        New branch: Pennywell, opened 2 May 1969
        Funds: £9,615
        """,
    "weather-log": """
        == Weather log, lighthouse of Skarn ==
        Observer: B. Eide
        Month: January 1949
        Day | Wind | Barometer
        11 | NW 7 | 986
        12 | NW 9 | 971
        13 | W 5 | 994
        Remarks: lantern pane cracked on the 12th
        """,
    "budget-table": """
        == Budget of the choir, 1991 ==
        Entry | Planned | Spent
        Sheet music | $640 | $712.20
        Hall rent | $1,500 | $1,500.00
        Travel | $2,250 | $1,986.40
        Treasurer: Anneke de Wit
        Approved: 17 December 1990
        """,
    "minutes": """
        == Minutes of the parish council ==
        Held: 4 June 1958, vestry
        Chair: Canon Whitlock
        Present: Mrs. Aldous, Mr. Penn, Mr. Quayle
        Resolved: to repair the lychgate for £85
        Proposed by: Mr. Quayle
        Next meeting: 2 July 1958
        """,
    "drug-label": """
        == Tincture of gentian ==
        Maker: Solberg Apothecary, Bergby
        Lot: 40-117
        Contents: 50 ml
        == Directions ==
        Adults: 20 drops in water, three times a day
        Children: 5 drops
        Keep below: 15 C
        """,
    "contract": """
        == Agreement of hire ==
        Owner: Pike Plant Hire Ltd.
        Hirer: Joanna Mirza
        Machine: steam roller No. 6
        Term: 10 weeks from 1 April 1936
        Rent: £7 10s. a week
        Deposit: £20
        Witness: A. Noakes
        """,
    "survey-results": """
        == Survey of readers, May 1987 ==
        Question | Yes | No
        Do you read the editorial? | 62% | 38%
        Do you solve the crossword? | 41% | 59%
        Do you keep old issues? | 17% | 83%
        Replies: 1,206 of 5,000
        Contact: Research desk, room 312
        """,
    "telegram": """
        == Telegram ==
        Office: Port Amsel
        Handed in: 6.20 pm
        To: Captain Dorne, SS Petrel
        COAL DELAYED STOP LOAD 340 TONS AT NARWICK STOP
        Sender: Agency Falk
        Charge: 4s. 6d.
        """,
    "recipe-card": """
        == Quince jelly ==
        From: Aunt Rosalind
        Ingredient | Amount
        Quinces | 4 lb
        Sugar | 3 lb 8 oz
        Water | 5 pints
        Boil: 40 minutes
        Makes: 7 jars
        """,
    "shipping-bill": """
        == Bill of lading ==
        Vessel: Merganser
        Master: H. Osei
        Port of loading: Valdora
        Port of discharge: Kestrel Bay
        Goods | Packages | Weight
        Cork bark | 210 bales | 9,450 kg
        Olive oil | 96 casks | 14,208 kg
        Freight: prepaid
        """,
    "school-report": """
        == Report for the summer term 1963 ==
        Pupil: Felix Ombati
        Form: 4B
        Subject | Mark | Remark
        Algebra | 71 | careful
        French | 58 | must read more
        Drawing | 84 | a pleasure
        Days absent: 3
        Form teacher: Mr. Ledbetter
        """,
    "meter-card": """
        == Gas meter card ==
        Consumer: V. Santoro
        Address: 17 Quarry Steps
        Meter: G 55218
        Quarter | Reading | Units
        March | 08214 | 312
        June | 08431 | 217
        September | 08512 | 81
        Inspector: P. Yilmaz
        """,
    "patent-page": """
        == Patent specification 614,902 ==
        Inventor: Greta Halvorsen
        Title: Improved latch for sliding doors
        Filed: 22 July 1946
        Accepted: 30 November 1948
        Agent: Marlow & Finch
        Drawings: 3 sheets
        """,
    "concert-bill": """
        == Concert in the Assembly Rooms ==
        Date: Saturday 12 October 1929
        Conductor: Leopold Arnaud
        Soloist: Mira Castellan, violoncello
        == Admission ==
        Stalls: 3s. 6d.
        Gallery: 1s.
        Doors open: 7.15 pm
        """,
}


def lines(name: str) -> list[str]:
    """Return the lines of a page."""
    return [line.strip() for line in PAGES[name].strip().splitlines()]


def draw() -> None:
    """Draw all pages."""
    from PIL import Image, ImageDraw, ImageFont, PngImagePlugin

    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in PAGES:
        page = Image.new("1", SIZE, 1)
        pen = ImageDraw.Draw(page)
        height = 60
        first = max([len(line.split(" | ")[0]) for line in lines(name) if " | " in line], default=0)
        second = max(240, 70 + 10 * first)
        for line in lines(name):
            heading = line.startswith("==")
            font = ImageFont.load_default(26 if heading else 20)
            for column, cell in enumerate(line.strip("= ").split(" | ")):
                across = 50 if column == 0 else second + (column - 1) * (SIZE[0] - second) // 2
                pen.text((across, height), cell, fill=0, font=font)
            height += 52 if heading else 38
            if " | " in line:
                pen.line((50, height - 8, SIZE[0] - 50, height - 8), fill=0)
        info = PngImagePlugin.PngInfo()
        info.add_itxt("Text", "\n".join(lines(name)))
        page.save(FOLDER / f"{name}.png", optimize=True, pnginfo=info)


if __name__ == "__main__":
    draw()
